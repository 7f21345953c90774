"""One network of the deep ablation: trained, and what is read off it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from experiments.paper.fashion_certificates import certificates, linear_certificates
from experiments.paper.images import image_parts
from experiments.timing import interleaved
from psilonnet.deploy import CompactNet
from psilonnet.functional import path_norm, product_bound
from psilonnet.nn import VARIANTS, PlainNet, make_net, path_norm_penalty
from psilonnet.scale import cell_key
from psilonnet.training import (
    Checkpoints,
    DivergedError,
    Plan,
    Pruning,
    Run,
    live_widths,
    one_cycle,
    repeat_member,
    take_members,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

    from experiments.cells import Cell
    from experiments.data import Parts
    from psilonnet.nn import Network
    from psilonnet.training import Callback, Rows

MODELS = ("P", "L1-IB", "L2-IB", "L1-OB", "L2-OB", "S", "Pj")
CLASSES = 10
WARMUP = 2  # steps that fill caches and moments before the clock starts
# App. C.2. The precision of all nets of the study is set here and nowhere else.
PLAN = Plan(
    steps=20_000,
    batch_size=200,
    schedule=one_cycle,
    evaluate_every=500,
    matmul_precision="highest",
    progress=False,
)


def plan_of(cell: Cell) -> Plan:
    """Return how the net of a cell is trained."""
    prune = Pruning(cell["prune_steps"], cell["row_norm"]) if "prune_steps" in cell else None
    return replace(
        PLAN,
        steps=cell["steps"],
        evaluate_every=max(1, min(PLAN.evaluate_every, cell["steps"] // 4)),
        projected=VARIANTS[f"{cell['model']}-ResNet"].training == "projected",
        prune=prune,
    )


def start_run(cell: Cell, parts: Parts, callbacks: list[Callback] | None = None) -> Run:
    """Return the run of a cell before its first step; all models have one initialisation."""
    name = f"{cell['model']}-ResNet"
    generator = torch.Generator().manual_seed(PLAN.seed)
    sizes = {"width": cell["width"], "depth": cell["depth"]}
    net = make_net(name, parts.columns, CLASSES, generator=generator, **sizes)
    return Run(
        repeat_member(net, 1),
        parts.train,
        parts.valid,
        loss="cross_entropy",
        penalty=VARIANTS[name].penalty,
        reg_strength=cell["reg_strength"],
        plan=plan_of(cell),
        callbacks=callbacks or (),
    )


def compute(cell: Cell, *, data: str, checkpoints: Path) -> Cell:
    """Train and measure the net of a cell; a net that diverges has only the reason."""
    parts = image_parts(data)
    if cell["stage"] == "times":
        return relative_times(cell, parts)
    checkpoints.mkdir(parents=True, exist_ok=True)
    path = checkpoints / f"{cell_key(cell)}.safetensors"
    run = start_run(cell, parts, [Checkpoints(path, every=1000)])
    try:
        run.train()
        result = {**measure(run, parts), **EXTRAS[cell["stage"]](cell, run, parts)}
    except DivergedError as error:
        result = {"diverged": str(error)}
    with suppress(FileNotFoundError):  # kept until all is measured
        path.unlink()
    return result


def measure(run: Run, parts: Parts) -> Cell:
    """Return losses, accuracy, sparsity, bounds and curves of a finished run."""
    net = take_members(run.net, 0)
    history = run.history
    return {
        "train_cross_entropy": float(run.mean_loss(parts.train)),
        "valid_cross_entropy": float(history.last("valid_loss")),
        "test_cross_entropy": float(run.mean_loss(parts.test)),
        "test_accuracy": accuracy(net, parts.test),
        "near_sparsity": float(net.near_sparsity()),
        "penalty": float(history.last("penalty")),
        **bounds(net),
        "steps": history.step,
        "valid_curve": history.valid_loss[:, 0].tolist(),
        "train_curve": history.train_loss[:, 0].tolist(),
    }


@torch.no_grad()
def accuracy(net: Network, rows: Rows) -> float:
    """Return the share of rows whose class has the largest output."""
    guesses = [net(part).argmax(dim=-1) for part in rows.x.split(2000)]
    return float((torch.cat(guesses) == rows.y[:, 0]).double().mean())


@torch.no_grad()
def bounds(net: Network) -> dict[str, float]:
    """Return the bounds of a net on the way from L-infinity to L1, in float64."""
    weights = [weight.double() for weight in net.weights()]
    return {
        "path_norm": float(path_norm(weights, residual=net.residual)),
        "improved": float(path_norm(weights, residual=net.residual, bound="improved")),
        "merged": float(path_norm(weights, residual=net.residual, bound="merged")),
        "product": float(product_bound(weights, residual=net.residual)),
        "path_norm_joined": float(path_norm(_joined(weights))),
    }


def _joined(weights: list[Tensor]) -> list[Tensor]:
    """Return weights with ``I + W`` in each block: the author's reading (Deviation D13)."""
    first, *blocks, last = weights
    return [first, *(w + torch.eye(w.shape[-1], dtype=w.dtype).unsqueeze(-2) for w in blocks), last]


def _no_extra(cell: Cell, run: Run, parts: Parts) -> Cell:
    return {}


def _certified(cell: Cell, run: Run, parts: Parts) -> Cell:
    """Return what can be proved of the P net; the others have no certificates here."""
    if cell["model"] != "P":
        return {}
    return {"certificates": certificates(PlainNet(take_members(run.net, 0)), parts.test)}


def _linear(cell: Cell, run: Run, parts: Parts) -> Cell:
    """Return what linear bounds prove of the net."""
    return {"linear": linear_certificates(PlainNet(take_members(run.net, 0)), parts.test)}


def _pruned(cell: Cell, run: Run, parts: Parts) -> Cell:
    """Return how much of a pruned net is left, before and after compaction."""
    net = take_members(run.net, 0)
    compact = CompactNet(net)
    sizes = [
        sum(layer.weight.numel() + layer.bias.numel() for layer in plain.layers)
        for plain in (PlainNet(net), compact.plain)
    ]
    x = parts.test.x[:1000].double()
    return {
        "exact_sparsity": float(net.exact_sparsity()),
        "live_widths": live_widths(net),
        "nonzero": int(sum((w != 0).sum() for w in net.weights())),
        "parameters": sizes[0],
        "compact_parameters": sizes[1],
        "compact_widths": compact.widths,
        "compact_difference": float((compact(x) - PlainNet(net)(x)[0]).abs().max()),
        "row_norms": run.history.row_norms,
    }


def _depth(cell: Cell, run: Run, parts: Parts) -> Cell:
    """Return what the closed-form penalty costs at this depth, beside a step."""
    again = start_run(cell, parts)

    def penalty() -> None:
        path_norm_penalty(again.net).sum().backward()

    seconds = timed({"step": again.take_step, "penalty": penalty}, rounds=7)
    return {f"{name}_milliseconds": 1e3 * value for name, value in seconds.items()}


EXTRAS = {
    "scout": _no_extra,
    "full": _certified,
    "linear": _linear,
    "pruned": _pruned,
    "depth": _depth,
}


def relative_times(cell: Cell, parts: Parts) -> Cell:
    """Return the time of a step of each model relative to P, steps of all taken in turn."""
    runs = {model: start_run({**cell, "model": model}, parts) for model in MODELS}
    steps = {model: run.take_step for model, run in runs.items()}
    seconds = timed(steps, rounds=cell["steps"] - WARMUP)
    return {
        "milliseconds": {model: 1e3 * value for model, value in seconds.items()},
        "relative_time": {model: value / seconds["P"] for model, value in seconds.items()},
    }


def timed(cases: dict[str, Callable[[], None]], *, rounds: int) -> dict[str, float]:
    """Return the median seconds of each case, in the precision of the study."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(PLAN.matmul_precision)
    try:
        return interleaved(cases, rounds=rounds, warmup=WARMUP)
    finally:
        torch.set_float32_matmul_precision(before)
