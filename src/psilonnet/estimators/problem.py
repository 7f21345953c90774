"""Encoded rows, and what the networks of a design see of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from psilonnet.nn import ColumnMap, MonotoneNet
from psilonnet.tables import weighted_quantile
from psilonnet.training import Rows, check_memory, stack_members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.estimators.designs import Design
    from psilonnet.nn import Network
    from psilonnet.training import Loss

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Problem:
    """Encoded rows, what is to be learned from them, and the loss that says how well.

    Attributes
    ----------
    x : Tensor of shape (rows, columns), in float64
    y : Tensor of shape (rows, targets)
    weight : Tensor of shape (rows,)
        In the loss.
    counts : Tensor of shape (rows,)
        In a score: without the weights of classes.
    numbers : Tensor of bool of shape (columns,)
        Which columns hold numbers, and not 0 and 1.
    loss : str or callable
    outputs : int
    validation_rows : int
        How many rows at the end are chosen on only.
    signs : Tensor of shape (columns,), or None
        The directions in which the one output may move with each column: -1, 0 or 1.
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    counts: Tensor
    numbers: Tensor
    loss: str | Loss
    outputs: int
    validation_rows: int = 0
    signs: Tensor | None = None

    @property
    def loss_key(self) -> Hashable:
        """What is equal for equal losses."""
        return self.loss if isinstance(self.loss, Hashable) else id(self.loss)

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
            validation_rows=len(held.y),
        )

    def parted(self, index: Array, counts: Array) -> Problem:
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


@dataclass(frozen=True)
class View:
    """A problem as the networks of a design see it.

    Attributes
    ----------
    problem : Problem
    design : Design
    width, depth : int
        Of the networks.
    seed : int
    """

    problem: Problem
    design: Design
    width: int
    depth: int
    seed: int

    @cached_property
    def columns(self) -> ColumnMap:
        """The map of the columns; its centers and scales are quartiles of the rows to train on."""
        numbers, bend = self.problem.numbers, self.design.columns
        if bend != "clipped":
            return ColumnMap.of(bend, numbers)
        center, scale = np.zeros(len(numbers)), np.ones(len(numbers))
        x, weight = self._known(self.problem.x)
        for k in np.flatnonzero(numbers):
            first, middle, third = weighted_quantile(x[:, k], weight, np.array([0.25, 0.5, 0.75]))
            if third > first:
                center[k], scale[k] = middle, (third - first) / 1.349
        return ColumnMap.of(bend, numbers, torch.from_numpy(center), torch.from_numpy(scale))

    @cached_property
    def seen(self) -> Tensor:
        """What the networks see of all rows, in float32."""
        return self.columns(self.problem.x).float()

    @cached_property
    def edges(self) -> Tensor | None:
        """Quantiles of each column to split it at; columns of two values are not split."""
        if self.design.pieces == 1:
            return None
        levels = np.arange(1, self.design.pieces) / self.design.pieces
        x, weight = self._known(self.seen)
        edges = [
            weighted_quantile(column, weight, levels)
            if len(np.unique(column)) > 2
            else np.full(len(levels), column.max())
            for column in x.T
        ]
        return torch.tensor(np.stack(edges, axis=1), dtype=torch.float32)

    def _known(self, table: Tensor) -> tuple[Array, Array]:
        """Return the rows of a table that may be trained on, and their weights."""
        own = slice(len(table) - self.problem.validation_rows)
        return table[own].double().numpy(), self.problem.weight[own].double().numpy()

    @property
    def signs(self) -> tuple[int, ...]:
        """The directions of the columns, as they tell one kind of job from another."""
        signs = self.problem.signs
        return () if signs is None else tuple(signs.int().tolist())

    def kind_of(self, net: Network, *training: Hashable) -> Hashable:
        """Return what jobs that share a population have in common, the way of training included."""
        shapes = tuple((name, t.shape[1:]) for name, t in net.state_dict().items())
        return (self.design, shapes, self.problem.loss_key, self.signs, *training)

    def whole(self, net: Network) -> nn.Module:
        """Return the function of some networks that is trained: monotone, if that is asked for."""
        signs = self.problem.signs
        return net if signs is None else MonotoneNet(net, signs)

    def make_population(self, members: int, batch_size: int) -> Network:
        """Return fresh networks with different starts, if there is memory to train them."""
        sizes = (self.problem.x.shape[1], self.problem.outputs)
        shape: dict[str, Any] = {"width": self.width, "depth": self.depth}
        shape["edges"] = self.edges
        with torch.device("meta"):  # shapes only
            shell = self.design.make_network(*sizes, **shape, members=(members,))
        check_memory(shell, min(batch_size, len(self.problem.x)))
        starts = [torch.Generator().manual_seed(self.seed + k) for k in range(members)]
        return stack_members(
            [self.design.make_network(*sizes, **shape, generator=start) for start in starts]
        )

    def rows(self, parts: Sequence[Array]) -> Rows | None:
        """Return the rows of each member; None if one has none."""
        if min(map(len, parts)) == 0:
            return None
        most = max(map(len, parts))
        own = torch.full((len(parts), most), -1)
        for row, part in zip(own, parts, strict=True):
            row[: len(part)] = torch.as_tensor(part)
        return Rows(self.seen, self.problem.y, self.problem.weight, own)
