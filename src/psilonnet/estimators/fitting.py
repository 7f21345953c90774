"""From encoded rows to trained networks: choose the strength, then train on all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.deploy import compact_nets
from psilonnet.estimators.jobs import Job
from psilonnet.nn import PSiLONNet, PSiLONResNet, plain_net
from psilonnet.tables import weighted_quantile
from psilonnet.training import (
    NARROWING,
    Callback,
    Narrowing,
    Plan,
    Pruning,
    Rows,
    get_loss,
    repeat_member,
    stack_members,
    take_members,
    trapezoid_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from torch import Tensor

    from psilonnet.estimators.splits import Split
    from psilonnet.nn import Network
    from psilonnet.training import Run

SHORT = 1000  # steps; below, no strength is dropped on the way
# One standard error needs the stronger neighbours of the best strength trained to the end.
RUNGS = {"best": NARROWING, "one_standard_error": ((0.05, 8), (0.3, 5))}
PRUNE_SHARE = 0.2  # of the steps, at the end
PRUNE_NORM = 16.0  # of the rows when pruning begins: larger leaves fewer weights


@dataclass(frozen=True)
class Problem:
    """Encoded rows, what is to be learned from them, and the loss that says how well."""

    x: Tensor  # (rows, columns)
    y: Tensor  # (rows, targets)
    weight: Tensor  # (rows,), in the loss
    counts: Tensor  # (rows,), in a score: without the weights of classes
    loss: str
    outputs: int

    def rows(self, index: np.ndarray[Any, Any] | None = None) -> Rows:
        """Return all rows, or some."""
        if index is None:
            return Rows(self.x, self.y, self.weight)
        chosen = torch.as_tensor(index)
        return Rows(self.x[chosen], self.y[chosen], self.weight[chosen])


def knot_edges(problem: Problem, pieces: int) -> Tensor | None:
    """Return quantiles of each column to split it at; columns of two values are not split."""
    if pieces == 0:
        return None
    levels = np.arange(1, pieces) / pieces
    x, weight = problem.x.double().numpy(), problem.weight.double().numpy()
    edges = [
        weighted_quantile(column, weight, levels)
        if len(np.unique(column)) > 2
        else np.full(len(levels), column.max())
        for column in x.T
    ]
    return torch.tensor(np.stack(edges, axis=1), dtype=torch.float32)


@dataclass(frozen=True)
class Design:
    """The network and its training."""

    architecture: str
    width: int
    depth: int
    edges: Tensor | None
    learning_rate: float
    device: str
    seed: int
    plan: Plan

    def make_net(self, problem: Problem, number: int = 0) -> Network:
        """Return a fresh network; the number tells members apart."""
        generator = torch.Generator().manual_seed(self.seed + number)
        sizes = (problem.x.shape[1], problem.outputs)
        shape: dict[str, Any] = {"width": self.width, "depth": self.depth, "edges": self.edges}
        if self.architecture == "resnet":
            return PSiLONResNet(*sizes, **shape, generator=generator)
        activation: Any = "relu" if self.architecture == "mlp" else "crelu"
        return PSiLONNet(*sizes, **shape, activation=activation, generator=generator)

    def job(
        self,
        net: Network,
        problem: Problem,
        train: Rows,
        valid: Rows | None,
        strengths: Sequence[float],
        *callbacks: Callback,
        prune: bool = False,
    ) -> Job:
        """Return the job to train a population."""
        plan = self.plan
        if prune:
            stage = Pruning(max(1, round(PRUNE_SHARE * plan.steps)), row_norm=PRUNE_NORM)
            plan = replace(plan, prune=stage)
        shapes = tuple((name, t.shape[1:]) for name, t in net.state_dict().items())
        settings = (self.learning_rate, self.device, replace(plan, seed=0))
        return Job(
            net=net.to(self.device),
            train=train,
            valid=valid,
            loss=problem.loss,
            strengths=tuple(strengths),
            plan=replace(plan, schedule=trapezoid_of(self.learning_rate)),
            callbacks=callbacks,
            kind=(self.architecture, shapes, problem.loss, valid is None, settings),
        )


class Recorder(Callback):
    """Keeps the last sparsities of every member, also of those that are dropped."""

    def __init__(self) -> None:
        self.last: dict[int, tuple[int, float, float]] = {}

    def on_evaluation(self, run: Run) -> None:
        """Note step, near-sparsity and exact sparsity."""
        near, exact = run.net.near_sparsity().tolist(), run.net.exact_sparsity().tolist()
        for position, member in enumerate(run.members):
            self.last[member] = (run.step, near[position], exact[position])


@dataclass(frozen=True)
class Choice:
    """What the held-out rows said.

    Attributes
    ----------
    strength : float
    path : dict of lists, one entry per strength
    history : dict of lists, one entry per evaluation, of the chosen strength
    held_out : ndarray of row numbers
    outputs : ndarray of shape (held-out rows, outputs)
        The outputs of networks that were not trained on these rows.
    nets : Network
        The networks of the chosen strength, one per split.
    """

    strength: float
    path: dict[str, list[float]]
    history: dict[str, list[float]]
    held_out: np.ndarray[Any, Any]
    outputs: np.ndarray[Any, Any]
    nets: Network


def choose_strength(
    problem: Problem,
    splits: Sequence[Split],
    strengths: Sequence[float],
    design: Design,
    selection: str,
) -> Generator[Job, Run, Choice]:
    """Train all strengths on all splits as one population, and choose by the held-out loss."""
    n = len(splits)
    net = repeat_member(design.make_net(problem), n * len(strengths))
    train = rows_of_splits(problem, [a for a, _ in splits], len(strengths))
    valid = rows_of_splits(problem, [b for _, b in splits], len(strengths))
    spread = [strength for strength in strengths for _ in splits]
    recorder = Recorder()
    # A short training is cheap, and says too little too early.
    narrowing = [Narrowing(RUNGS[selection])] if design.plan.steps >= SHORT else []
    run = yield design.job(net, problem, train, valid, spread, recorder, *narrowing)

    losses = run.history.last("valid_loss").reshape(-1, n).mean(dim=1)
    # A strength counts only if none of its folds was lost.
    whole = [k for k in range(len(strengths)) if {k * n + f for f in range(n)} <= {*run.members}]
    best = min(whole, key=lambda k: float(losses[k]))
    held = np.concatenate([rows for _, rows in splits])
    nets, outputs = _of_strength(run, problem, splits, best)
    if selection == "one_standard_error":
        limit = float(losses[best]) + _standard_error(problem, held, outputs)
        best = max((k for k in whole if losses[k] <= limit), key=strengths.__getitem__)
        nets, outputs = _of_strength(run, problem, splits, best)
    return Choice(
        strength=float(strengths[best]),
        path=_path(run, recorder, strengths, n),
        history=history_of(run, [best * n + f for f in range(n)]),
        held_out=held,
        outputs=outputs,
        nets=nets,
    )


def _of_strength(
    run: Run, problem: Problem, splits: Sequence[Split], k: int
) -> tuple[Network, np.ndarray[Any, Any]]:
    """Return the networks of a strength, and their outputs on the rows held out from each."""
    n = len(splits)
    places = [p for p, member in enumerate(run.members) if member // n == k]
    nets = take_members(run.net, torch.tensor(places))
    outputs = [
        forward(take_members(nets, fold), problem.x[torch.as_tensor(held)])
        for fold, (_, held) in enumerate(splits)
    ]
    return nets, np.concatenate(outputs)


def _standard_error(
    problem: Problem, held: np.ndarray[Any, Any], outputs: np.ndarray[Any, Any]
) -> float:
    """Return the standard error of the mean held-out loss."""
    rows = torch.as_tensor(held)
    losses = get_loss(problem.loss)(torch.as_tensor(outputs), problem.y[rows].double())
    weight = problem.weight[rows].double() / problem.weight[rows].double().mean()
    return float((losses * weight).std() / len(rows) ** 0.5)


def train_on_all(
    problem: Problem, strength: float, design: Design, *, n_members: int, prune: bool
) -> Generator[Job, Run, Run]:
    """Train members with different starts and batches on all rows."""
    net = stack_members([design.make_net(problem, 1 + m) for m in range(n_members)])
    rows = problem.rows()
    if n_members > 1:  # an order of the rows for each member
        own = torch.arange(rows.count).repeat(n_members, 1)
        rows = Rows(rows.x, rows.y, rows.weight, own)
    return (yield design.job(net, problem, rows, None, [strength] * n_members, prune=prune))


def forward(net: Network, x: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the averaged outputs of the members in float64, of shape (rows, outputs)."""
    if float(net.layers[0].prune_mix) > 0:  # pruned: only the live part is computed
        outputs = torch.stack([live(x) for live in compact_nets(net)])
    else:
        outputs = plain_net(net)(x)
    averaged: np.ndarray[Any, np.dtype[np.float64]] = outputs.mean(dim=0).numpy()
    return averaged


def history_of(run: Run, members: Sequence[int]) -> dict[str, list[float]]:
    """Return the evaluations of a run, averaged over some members."""
    history = run.history
    columns = {
        name: getattr(history, name)[:, list(members)].mean(dim=1).tolist()
        for name in ("train_loss", "valid_loss", "penalty")
    }
    return {"step": [float(s) for s in history.step], **columns}


def _path(
    run: Run, recorder: Recorder, strengths: Sequence[float], n: int
) -> dict[str, list[float]]:
    """Return, for each strength, what was seen of it last."""
    valid, bound = (
        run.history.last(c).reshape(-1, n).mean(dim=1) for c in ("valid_loss", "penalty")
    )
    lines = [recorder.last.get(m, (0, np.nan, np.nan)) for m in range(n * len(strengths))]
    seen = np.array(lines).reshape(-1, n, 3).mean(axis=1)
    order = np.argsort(strengths)
    columns = {
        "reg_strength": np.array(strengths, dtype=float),
        "valid_loss": valid.numpy(),
        "bound": bound.numpy(),
        "near_sparsity": seen[:, 1],
        "sparsity": seen[:, 2],
        "steps": seen[:, 0],
    }
    return {name: column[order].tolist() for name, column in columns.items()}


def rows_of_splits(problem: Problem, parts: Sequence[np.ndarray[Any, Any]], repeats: int) -> Rows:
    """Return rows shared by all members for one split, own rows of each member for folds."""
    if len(parts) == 1:
        return problem.rows(parts[0])
    most = max(map(len, parts))
    own = torch.full((len(parts), most), -1)
    for row, part in zip(own, parts, strict=True):
        row[: len(part)] = torch.as_tensor(part)
    return Rows(problem.x, problem.y, problem.weight, own.repeat(repeats, 1))
