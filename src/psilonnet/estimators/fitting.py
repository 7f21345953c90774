"""From encoded rows to trained networks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from psilonnet._warnings import warn_user
from psilonnet.estimators.architectures import make_network
from psilonnet.estimators.jobs import Job
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainNet
from psilonnet.tables import weighted_quantile
from psilonnet.training import (
    Pruning,
    Rows,
    check_memory,
    members_of,
    stack_members,
    trapezoid_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from torch import Tensor

    from psilonnet.nn import Bend, Network, PlainLayer
    from psilonnet.tables import Column, TableEncoder
    from psilonnet.training import Callback, Plan, Run

Array = np.ndarray[Any, Any]
PRUNE_SHARE = 0.5  # of the steps, at the end


class Cut(NamedTuple):
    """How far to prune: the norm of the rows at the beginning, the share of the bound to drop."""

    row_norm: float
    drop: float


@dataclass(frozen=True)
class Problem:
    """Encoded rows, what is to be learned from them, and the loss that says how well."""

    x: Tensor  # (rows, columns)
    y: Tensor  # (rows, targets)
    weight: Tensor  # (rows,), in the loss
    counts: Tensor  # (rows,), in a score: without the weights of classes
    loss: str
    outputs: int
    given: int = 0  # rows at the end that are chosen on only, and that knots do not see
    columns: ColumnMap | None = None  # what networks see of x; all as it is if there is none

    @cached_property
    def seen(self) -> Tensor:
        """What the networks see, in float32."""
        return (self.x if self.columns is None else self.columns(self.x)).float()

    def rows(self, index: np.ndarray[Any, Any] | None = None) -> Rows:
        """Return all rows, or some."""
        if index is None:
            return Rows(self.seen, self.y, self.weight)
        chosen = torch.as_tensor(index)
        return Rows(self.seen[chosen], self.y[chosen], self.weight[chosen])

    def truth(self, index: Array) -> tuple[Array, Array, Array]:
        """Return first target, weight and count of some rows in float64."""
        y, weight, counts = (
            column.double().numpy()[index] for column in (self.y[:, 0], self.weight, self.counts)
        )
        return y, weight, counts

    def followed_by(self, held: Problem) -> Problem:
        """Return these rows followed by rows that are chosen on only."""
        return replace(
            self,
            x=torch.cat([self.x, held.x]),
            y=torch.cat([self.y, held.y]),
            weight=torch.cat([self.weight, held.weight]),
            counts=torch.cat([self.counts, held.counts]),
            given=len(held.y),
        )

    def parted(
        self, index: np.ndarray[Any, Any], counts: np.ndarray[Any, np.dtype[np.float64]]
    ) -> Problem:
        """Return rows that may occur several times, each time with a part of its weight."""
        chosen = torch.as_tensor(index)
        part = torch.as_tensor(counts)
        weight = self.weight[chosen] * (part / self.counts[chosen]).float()
        return replace(
            self,
            x=self.x[chosen],
            y=self.y[chosen],
            weight=weight / weight.mean(),
            counts=part,
        )


def _knot_edges(problem: Problem, pieces: int) -> Tensor | None:
    """Return quantiles of each column to split it at; columns of two values are not split."""
    if pieces == 0:
        return None
    levels = np.arange(1, pieces) / pieces
    own = slice(len(problem.x) - problem.given)
    x, weight = problem.seen[own].double().numpy(), problem.weight[own].double().numpy()
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
    knots: int
    learning_rate: float
    device: str
    seed: int
    plan: Plan

    def make_nets(self, problem: Problem, numbers: Iterable[int]) -> list[Network]:
        """Return fresh networks; the numbers tell them apart."""
        numbers = list(numbers)
        self.check_memory(problem, len(numbers))
        sizes = (problem.x.shape[1], problem.outputs)
        edges = _knot_edges(problem, self.knots)
        shape: dict[str, Any] = {"width": self.width, "depth": self.depth, "edges": edges}
        starts = [torch.Generator().manual_seed(self.seed + number) for number in numbers]
        return [
            make_network(self.architecture, *sizes, **shape, generator=start) for start in starts
        ]

    def check_memory(self, problem: Problem, members: int) -> None:
        """Refuse a population that would not fit, before anything is allocated."""
        if torch.device(self.device).type != "cpu":
            return
        shape: dict[str, Any] = {"width": self.width, "depth": self.depth}
        sizes = (problem.x.shape[1], problem.outputs)
        if self.knots:
            shape["edges"] = torch.zeros(self.knots - 1, sizes[0])
        with torch.device("meta"):
            net = make_network(self.architecture, *sizes, **shape, members=(members,))
        check_memory(net, min(self.plan.batch_size, len(problem.x)))

    def job(
        self,
        net: Network,
        problem: Problem,
        train: Rows,
        valid: Rows | None,
        strengths: Sequence[float],
        *callbacks: Callback,
        prune: Sequence[Cut] | None = None,
    ) -> Job:
        """Return the job to train a population, its members pruned so far if that is given."""
        plan = self.plan
        if prune is not None:
            steps = max(1, round(PRUNE_SHARE * plan.steps))
            row_norm, drop = zip(*prune, strict=True)
            stage = Pruning(steps, row_norm=row_norm, settle=steps // 2, drop=drop)
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


@dataclass(frozen=True)
class Pick:
    """A network of the model: how it is made, and its weight in the average."""

    design: Design
    strength: float
    weight: float = 1.0


def train_on_all(
    problem: Problem, picks: Sequence[Pick], *, n_members: int, prune: Cut | None
) -> Generator[Job, Run, tuple[Average, dict[str, list[float]], list[Pick]]]:
    """Train what was picked on all rows, each with several starts.

    Returns
    -------
    net : Average
    history : dict of lists
        Of the first design.
    picks : list of Pick
        What is in the average, with weights that sum to 1: networks that diverged are not.
    """
    nets: list[Network] = []
    left: list[Pick] = []
    histories = []
    for design in dict.fromkeys(pick.design for pick in picks):
        own = [pick for pick in picks if pick.design == design for _ in range(n_members)]
        first = 1 + sum(map(members_of, nets))
        net = stack_members(design.make_nets(problem, range(first, first + len(own))))
        strengths = [pick.strength for pick in own]
        cuts = None if prune is None else [prune]
        run = yield design.job(net, problem, problem.rows(), None, strengths, prune=cuts)
        warn_lost(run, "the last training, on all rows")
        nets.append(run.net.cpu())
        left += [own[member] for member in run.members]
        histories.append(history_of(run, run.members))
    total = sum(pick.weight for pick in left)
    count = Counter(left)
    used = [
        replace(pick, weight=count[pick] * pick.weight / total) for pick in picks if pick in count
    ]
    return averaged(problem, nets, [pick.weight for pick in left]), histories[0], used


class LostNetworksWarning(UserWarning):
    """Some networks diverged in training, and the model is made of the others."""


def warn_lost(run: Run, training: str) -> None:
    """Warn if members of a run diverged."""
    lost = run.history.diverged
    if lost:
        warn_user(
            f"{len(lost)} of {run.history.members} networks diverged in {training}, the first at "
            f"step {lost[0].step} with loss {lost[0].loss:.3g}. They are left out, and the others "
            "go on. A lower 'learning_rate' may keep them; so may columns and a target without "
            "extreme values.",
            LostNetworksWarning,
        )


SCALINGS: dict[str, Bend] = {
    "standard": "identity",
    "robust": "clipped",
    "log_tails": "log_tails",
}


def column_map(
    encoder: TableEncoder, columns: Sequence[Column], weight: Array, scaling: str
) -> ColumnMap:
    """Return what networks see of encoded columns."""
    center, scale = np.zeros(encoder.width), np.ones(encoder.width)
    for k in np.flatnonzero(encoder.holds_numbers) if scaling == "robust" else ():
        code, values = encoder.codes[encoder.sources[k]], columns[encoder.sources[k]].values
        present = ~np.isnan(values)
        z = (values[present] - code.center) / code.scale
        first, middle, third = weighted_quantile(z, weight[present], np.array([0.25, 0.5, 0.75]))
        if third > first:
            center[k], scale[k] = middle, (third - first) / 1.349
    bent = torch.from_numpy(encoder.holds_numbers)
    return ColumnMap.of(SCALINGS[scaling], bent, torch.tensor(center), torch.tensor(scale))


class Average(NamedTuple):
    """A weighted average of trained networks, and how sparse they were."""

    net: AveragedNet
    near_sparsity: float
    sparsity: float


@torch.no_grad()
def averaged(problem: Problem, nets: Sequence[Network], weights: Sequence[float]) -> Average:
    """Return the weighted average of all members of some populations."""
    total, n_in = sum(weights), problem.x.shape[1]
    columns = problem.columns or ColumnMap.identity(n_in)
    left = [weight / total for weight in weights]
    parts: dict[Any, list[Any]] = {}
    for net in nets:
        layers = [_rounded(layer) for layer in PlainNet(net).layers]
        own, left = left[: members_of(net)], left[members_of(net) :]
        kind = tuple((layer.split, layer.weight.shape[1:]) for layer in layers)
        parts.setdefault(kind, []).append((layers, own))
    joined = [
        Part(
            PlainNet.of_layers([_joined(same) for same in zip(*chains, strict=True)]),
            torch.tensor([w for own in shares for w in own], dtype=torch.float64),
            columns,
            torch.arange(n_in),
        )
        for chains, shares in (zip(*found, strict=True) for found in parts.values())
    ]
    near, exact = (
        float(torch.cat([getattr(net, way)() for net in nets]).mean())
        for way in ("near_sparsity", "exact_sparsity")
    )
    return Average(AveragedNet(joined, n_in), near, exact)


def _rounded(layer: PlainLayer) -> PlainLayer:
    return replace(layer, weight=layer.weight.float().double(), bias=layer.bias.float().double())


def _joined(layers: Sequence[PlainLayer]) -> PlainLayer:
    edges = [layer.edges for layer in layers if layer.edges is not None]
    return replace(
        layers[0],
        weight=torch.cat([layer.weight for layer in layers]),
        bias=torch.cat([layer.bias for layer in layers]),
        edges=torch.cat(edges) if edges else None,
    )


def forward(net: Network | AveragedNet, x: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the averaged outputs of the members in float64, of shape (rows, outputs)."""
    outputs: np.ndarray[Any, np.dtype[np.float64]] = AveragedNet.of(net)(x).numpy()
    return outputs


def history_of(run: Run, members: Sequence[int]) -> dict[str, list[float]]:
    """Return the evaluations of a run, averaged over some members."""
    history, own = run.history, list(members)
    return {
        "step": [float(s) for s in history.step],
        "train_loss": history.train_loss[:, own].mean(dim=1).tolist(),
        "valid_loss": history.valid_loss[:, own].mean(dim=1).tolist(),
        "penalty": history.penalty[:, own].mean(dim=1).tolist(),
    }


def rows_of_splits(problem: Problem, parts: Sequence[np.ndarray[Any, Any]], repeats: int) -> Rows:
    """Return rows shared by all members for one split, own rows of each member for folds."""
    if len(parts) == 1:
        return problem.rows(parts[0])
    most = max(map(len, parts))
    own = torch.full((len(parts), most), -1)
    for row, part in zip(own, parts, strict=True):
        row[: len(part)] = torch.as_tensor(part)
    return Rows(problem.seen, problem.y, problem.weight, own.repeat(repeats, 1))
