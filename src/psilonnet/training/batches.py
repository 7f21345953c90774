"""Rows to train on, and the batch of each step as a pure function of seed and step.

No generator is kept between steps, so a run resumes anywhere with nothing to restore.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


EPOCH = 2**23  # numbers of the inputs of an epoch that are gathered at once


@dataclass(frozen=True)
class Batch:
    """The rows of one step: x and y of shape (rows, .) or (members, rows, .), and weights."""

    x: Tensor
    y: Tensor
    weight: Tensor | None


@dataclass(frozen=True)
class Rows:
    """A table of rows, shared by all members or with rows of their own.

    Parameters
    ----------
    x : Tensor of shape (n, columns)
    y : Tensor of shape (n, targets)
    weight : Tensor of shape (n,), or (members, n), optional
        Weights of the rows, for all members or for each. They count relative to their mean.
    own : Tensor of shape (members, k), optional
        The rows of each member (folds, groups, bootstrap samples) as indices into x. A member
        with fewer than k rows is padded with -1.
    """

    x: Tensor
    y: Tensor
    weight: Tensor | None = None
    own: Tensor | None = None

    def __post_init__(self) -> None:
        _check_table(self.x, self.y)
        if self.own is not None:
            _check_own(self.own, len(self.x))
        if self.weight is not None:
            _check_weight(self.weight, len(self.x))
        in_use = self.weight if self.own is None else self._own_weight(self.own)
        if in_use is not None:
            _check_members_have_rows(in_use)

    @property
    def count(self) -> int:
        """The number of rows that an epoch goes through."""
        return len(self.x) if self.own is None else self.own.shape[-1]

    def take(self, members: Tensor) -> Rows:
        """Return the rows for a selection of the members."""
        weight = self.weight
        if weight is not None and weight.dim() == 2:
            weight = weight[members]
        own = None if self.own is None else self.own[members]
        return Rows(self.x, self.y, weight, own)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Rows:
        """Return the rows on a device, numbers in a precision."""
        weight = None if self.weight is None else self.weight.to(device, dtype)
        own = None if self.own is None else self.own.to(device)
        return Rows(self.x.to(device, dtype), self.y.to(device, dtype), weight, own)

    def with_inputs(self, x: Tensor) -> Rows:
        """Return the same rows with other inputs."""
        return Rows(x, self.y, self.weight, self.own)

    def at(self, columns: Tensor) -> Batch:
        """Return rows by position: of the table, or among the own rows of each member.

        Parameters
        ----------
        columns : Tensor of shape (k,), or (members, k) for members with rows of their own
        """
        index = self.index_at(columns)
        return Batch(self.x[index], self.y[index], self.weight_at(columns))

    def index_at(self, columns: Tensor) -> Tensor:
        """Return which rows of the table these are, of shape (k,) or (members, k)."""
        if self.own is None:
            return columns
        return self.own.gather(-1, columns.expand(len(self.own), -1)).clamp(min=0)

    def weight_at(self, columns: Tensor) -> Tensor | None:
        """Return the weights of rows, scaled to mean one over all rows of a member."""
        if self.own is None:
            if self.weight is None:
                return None
            return self.weight[..., columns] / self.weight.mean(dim=-1, keepdim=True)
        weight = self._own_weight(self.own)
        columns = columns.expand(len(weight), -1)
        return weight.gather(-1, columns) / weight.mean(dim=-1, keepdim=True)

    def _own_weight(self, own: Tensor) -> Tensor:
        """Return the weights of the own rows of each member, 0 for its padding."""
        present = (own >= 0).to(self.x.dtype)
        if self.weight is None:
            return present
        rows = own.clamp(min=0)
        shared = self.weight.dim() == 1
        return present * (self.weight[rows] if shared else self.weight.gather(-1, rows))


def _check_table(x: Tensor, y: Tensor) -> None:
    if x.dim() != 2:
        raise ValueError(f"The rows must have shape (rows, columns). Got {tuple(x.shape)} instead.")
    if len(x) == 0:
        raise ValueError("A table must have at least one row. Got none.")
    if y.dim() != 2 or len(y) != len(x):
        raise ValueError(
            f"The target must have shape ({len(x)}, targets), one line for each row. "
            f"Got {tuple(y.shape)} instead."
        )
    if not x.isfinite().all():
        columns = (~x.isfinite()).any(dim=0).nonzero().flatten().tolist()
        raise ValueError(
            f"The numbers of the rows must be finite in {x.dtype}. Got NaN, infinity or an "
            f"overflow in columns {columns}: fill them, or scale the columns."
        )


def _check_own(own: Tensor, count: int) -> None:
    if own.dim() != 2:
        raise ValueError(
            f"The 'own' rows must have shape (members, rows). Got {tuple(own.shape)} instead."
        )
    if own.numel() and own.max() >= count:
        raise ValueError(
            f"The 'own' rows must be among the {count} rows. Got the index {int(own.max())}."
        )


def _check_weight(weight: Tensor, count: int) -> None:
    if weight.dim() not in (1, 2) or weight.shape[-1] != count:
        raise ValueError(
            f"There must be one weight for each of the {count} rows. "
            f"Got weights of shape {tuple(weight.shape)} instead."
        )
    bad = weight[~(weight.isfinite() & (weight >= 0))]
    if len(bad):
        raise ValueError(f"A weight must be finite and not negative. Got {float(bad[0])}.")


def _check_members_have_rows(weight: Tensor) -> None:
    without = (weight.sum(dim=-1) <= 0).reshape(-1).nonzero().flatten().tolist()
    if without:
        who = "A table" if weight.dim() == 1 else f"Member {without[0]}"
        raise ValueError(f"{who} must have a row whose weight is above zero. Got none.")


class Batches:
    """The batches of a run, each a pure function of seed and step.

    An epoch is a permutation of the rows, cut into batches; a rest smaller than a batch waits
    for the next epoch. Where all rows are one batch, their order does not matter, and all epochs
    are the first. Members with rows of their own have permutations of their own, which
    depend on the number of the member but not on who else is trained.

    Parameters
    ----------
    rows : Rows
    size : int
        Rows of a batch; all, if there are fewer.
    seed : int
    members : sequence of int
        The numbers of the members that rows of their own belong to.
    """

    def __init__(self, rows: Rows, *, size: int, seed: int, members: Sequence[int]) -> None:
        self.rows, self.size = rows, min(size, rows.count)
        self._keys = [(m,) for m in members] if rows.own is not None else [()]
        self._seed = seed
        numbers = len(self._keys) * rows.count * rows.x.shape[1]
        self._whole = numbers <= EPOCH
        self._epoch, self._batches = -1, list[Batch]()
        self._index: Sequence[Tensor] = ()

    def at(self, step: int) -> Batch:
        """Return the batch of a step."""
        epoch, position = divmod(step, self.rows.count // self.size)
        if self.size == self.rows.count:
            epoch = 0
        if epoch != self._epoch:
            self._draw(epoch)
        batch = self._batches[position]
        return batch if self._whole else replace(batch, x=self._inputs(self._index[position]))

    def _draw(self, epoch: int) -> None:
        """Shuffle the rows, and gather those of all batches at once if they are not too many."""
        rows, n = self.rows, self.rows.count
        seeds = [(self._seed, epoch, *key) for key in self._keys]
        drawn = np.stack([np.random.default_rng(seed).permutation(n) for seed in seeds])
        columns = torch.from_numpy(drawn if rows.own is not None else drawn[0]).to(rows.x.device)
        index, weight = rows.index_at(columns), rows.weight_at(columns)
        x = self._inputs(index) if self._whole else rows.x.new_empty(*index.shape, 0)
        self._index = torch.split(index, self.size, dim=-1)
        xs, ys = (torch.split(part, self.size, dim=-2) for part in (x, rows.y[index]))
        weights = [None] * len(xs) if weight is None else torch.split(weight, self.size, dim=-1)
        self._epoch, self._batches = epoch, [Batch(*b) for b in zip(xs, ys, weights, strict=True)]

    def _inputs(self, index: Tensor) -> Tensor:
        x = self.rows.x
        return x.index_select(0, index.flatten()).view(*index.shape, x.shape[1])
