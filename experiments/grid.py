"""The paper's grid of strengths as one population, and what is read off it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from psilonnet.nn import VARIANTS, make_net, path_norm_penalty
from psilonnet.training import (
    STRENGTHS,
    Plan,
    Run,
    live_widths,
    repeat_member,
    take_members,
    warm_path,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from psilonnet.nn import Network
    from psilonnet.training import Callback

PER_STRENGTH = ("strengths", "valid_loss", "test_loss", "penalty", "path_norm", "near_sparsity")
CURVES = ("steps", "valid_curves", "train_curves")


def start_net(variant: str, parts: Parts, *, seed: int, width: int = 500) -> Network:
    """Return the one initialisation that all members of a grid share."""
    generator = torch.Generator().manual_seed(seed)
    return make_net(variant, parts.columns, 1, width=width, depth=3, generator=generator)


def make_run(
    net: Network,
    variant: str,
    table: Table,
    parts: Parts,
    strengths: Sequence[float],
    plan: Plan,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Return a run of a population over strengths."""
    return Run(
        net,
        parts.train,
        parts.valid,
        loss=table.loss,
        penalty=VARIANTS[variant].penalty,
        reg_strength=torch.tensor(strengths),
        plan=plan,
        callbacks=callbacks,
    )


def describe(run: Run, parts: Parts, strengths: Sequence[float], seconds: float) -> Cell:
    """Return everything that the tables read off a finished run."""
    with torch.no_grad():
        test = run.mean_loss(parts.test)
        path_norm = path_norm_penalty(run.net)
    history = run.history
    cell: Cell = {
        "strengths": list(strengths),
        "steps": history.step,
        "valid_curves": history.valid_loss.tolist(),
        "train_curves": history.train_loss.tolist(),
        "valid_loss": history.last("valid_loss").tolist(),
        "test_loss": test.tolist(),
        "penalty": history.last("penalty").tolist(),
        "path_norm": path_norm.tolist(),
        "near_sparsity": run.net.near_sparsity().tolist(),
        "exact_sparsity": run.net.exact_sparsity().tolist(),
        "seconds": seconds,
    }
    if run.plan.prune is not None:
        members = [take_members(run.net, m) for m in range(len(run.members))]
        cell["live_widths"] = [live_widths(member) for member in members]
        cell["nonzero"] = [int(sum((w != 0).sum() for w in m.weights())) for m in members]
        cell["row_norms"] = history.row_norms
    return cell


def fresh_grid(
    variant: str,
    table: Table,
    parts: Parts,
    *,
    strengths: Sequence[float] = STRENGTHS,
    plan: Plan | None = None,
    width: int = 500,
    curves: bool = True,
) -> Cell:
    """Train all strengths side by side from one common initialisation (the paper's text)."""
    plan = Plan() if plan is None else plan
    net = repeat_member(start_net(variant, parts, seed=plan.seed, width=width), len(strengths))
    begin = perf_counter()
    run = make_run(net, variant, table, parts, strengths, plan)
    run.train()
    cell = describe(run, parts, strengths, perf_counter() - begin)
    return cell if curves else {k: v for k, v in cell.items() if k not in CURVES}


def warm_grid(
    variant: str,
    table: Table,
    parts: Parts,
    *,
    strengths: Sequence[float] = STRENGTHS,
    plan: Plan | None = None,
) -> Cell:
    """Train strength after strength, each from the last one's weights (the author's code)."""
    plan = Plan() if plan is None else plan
    seeds = count(plan.seed)

    def run_at(net: Network, strength: float) -> Run:
        own = replace(plan, seed=next(seeds))  # other batches at every strength
        return make_run(net, variant, table, parts, [strength], own)

    cells = []
    begin = perf_counter()
    for strength, run in warm_path(start_net(variant, parts, seed=plan.seed), strengths, run_at):
        cells.append(describe(run, parts, [strength], perf_counter() - begin))
        begin = perf_counter()
    joined: Cell = {
        name: [value for cell in cells for value in cell[name]] for name in PER_STRENGTH
    }
    return {**joined, "seconds": sum(cell["seconds"] for cell in cells)}


def best(cell: Cell) -> int:
    """Return the position of the least validation loss."""
    return min(range(len(cell["valid_loss"])), key=cell["valid_loss"].__getitem__)
