"""Normalised weight rows of some members, and the way back to their directions.

It computes what :mod:`psilonnet.functional.normalized_linear` does, but for all rows of one length
in one call each, and into memory that is kept from step to step. Views are made once, too: one
costs as much as a call that computes.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from psilonnet.training.projected_rows import ProjectedRows


class PerRow(NamedTuple):
    """One number for each row, of shape (members, rows) each.

    Attributes
    ----------
    norm : the norms of the directions
    scale : the factors from directions to weights
    along : the products of the weights' gradients and the directions
    normal : the factors of the gradient of the norm, which is taken off
    share : the factors from projected directions to weights
    along_projected : the products of the weights' gradients and the projected directions
    """

    norm: Tensor
    scale: Tensor
    along: Tensor
    normal: Tensor
    share: Tensor
    along_projected: Tensor

    def part(self, start: int, stop: int) -> PerRow:
        """Return the numbers of some rows."""
        return PerRow(*(numbers[:, start:stop] for numbers in self))


class FirstRows:
    """The rows of the first layer, with their outputs last in memory.

    What the rows share, and what the pieces of an input share, is then read in order.

    Parameters
    ----------
    direction, gradient : Tensor of shape (members, pieces, in, out)
        The gradient is that of the weight, until :meth:`pull_back`.
    numbers : PerRow
    order : {1, 2}
        Of the norm.
    """

    def __init__(self, direction: Tensor, gradient: Tensor, numbers: PerRow, order: int) -> None:
        self.direction, self.gradient, self.order = direction, gradient, order
        self.split = direction.shape[1] > 1
        self.weight, self._magnitude, self._scratch = (
            torch.empty_like(direction, memory_format=torch.contiguous_format) for _ in range(3)
        )
        self._largest = torch.empty_like(self.weight[:, :1]) if self.split else self._magnitude
        self._count = torch.empty_like(self._largest)
        self._mass = self._largest.squeeze(1)  # (members, in, out)
        self._products = self._scratch.flatten(1, 2)
        self.numbers = numbers
        self._scale, self._normal, self._share = (
            per_row[:, None, None] for per_row in (numbers.scale, numbers.normal, numbers.share)
        )
        self.projected: ProjectedRows | None = None

    def begin_pruning(self) -> None:
        """Make place for the projected directions."""
        self.projected = ProjectedRows(
            self.direction, self._magnitude, self._largest, inputs=2, axes=(1, 2)
        )

    def measure(self) -> None:
        """Write the norms."""
        torch.abs(self.direction, out=self._magnitude)
        if self.split:
            torch.amax(self._magnitude, dim=1, keepdim=True, out=self._largest)
        if self.order == 1:
            torch.sum(self._mass, dim=1, out=self.numbers.norm)
        else:
            torch.sum(self._mass.square(), dim=1, out=self.numbers.norm).sqrt_()

    def make(self) -> None:
        """Make the weight; see Eq. (1) and, for the pruning stage, Eq. (5)."""
        torch.mul(self.direction, self._scale, out=self.weight)
        if self.projected is not None:
            self.weight.addcmul_(self.projected.project(), self._share)

    def multiply_out(self) -> None:
        """Write the product of the gradient and the direction of each row."""
        torch.mul(self.gradient, self.direction, out=self._scratch)
        torch.sum(self._products, dim=1, out=self.numbers.along)
        if self.projected is not None:
            self.projected.multiply_out(self.gradient, self.numbers.along_projected)

    def pull_back(self) -> None:
        """Make the gradient ``scale * gradient - normal * d norm``; see Eq. (2)."""
        if self.projected is not None:
            off = self.projected.pull_back(self.gradient, self._scale, self._share, self._normal)
            self.gradient.addcmul_(self._signs(), off, value=-1)
            return
        if self.order == 1:
            slope = self._signs()
        else:
            slope = self._shares().mul_(self.direction) if self.split else self.direction
        self.gradient.mul_(self._scale).addcmul_(slope, self._normal, value=-1)

    def reach(self) -> Tensor:
        """Return how far all inputs together can move each row, of shape (members, out)."""
        return self._mass.sum(dim=1).mul_(self.numbers.scale.abs())

    def penalise(self, pull: Tensor) -> None:
        """Add to the gradient that of ``sum(pull * reach)``, the sign of the scale in the pull."""
        self.gradient.addcmul_(self._signs(), pull[:, None, None])

    def _signs(self) -> Tensor:
        """Return the slope of the largest piece of each input, shared evenly at ties."""
        if not self.split:
            return torch.sgn(self.direction, out=self._scratch)
        return self._shares().mul_(torch.sgn(self.direction))

    def _shares(self) -> Tensor:
        """Return 1 where a piece is the largest of its input; equal ones share it."""
        shares = torch.eq(self._magnitude, self._largest, out=self._scratch)
        torch.sum(shares, dim=1, keepdim=True, out=self._count)
        return shares.div_(self._count)


class OtherRows:
    """The rows of all layers above the first, which are equally long, one below the other.

    Parameters
    ----------
    direction, gradient : Tensor of shape (members, rows, in)
        As in :class:`FirstRows`.
    numbers : PerRow
    order : {1, 2}
    """

    def __init__(self, direction: Tensor, gradient: Tensor, numbers: PerRow, order: int) -> None:
        self.direction, self.gradient, self.order = direction, gradient, order
        self.weight, self.magnitude, self._scratch = (
            torch.empty_like(direction, memory_format=torch.contiguous_format) for _ in range(3)
        )
        self.numbers = numbers
        self._scale, self._normal, self._share = (
            per_row.unsqueeze(-1) for per_row in (numbers.scale, numbers.normal, numbers.share)
        )
        self.projected: ProjectedRows | None = None

    def begin_pruning(self) -> None:
        """Make place for the projected directions."""
        self.projected = ProjectedRows(
            self.direction, self.magnitude, self.magnitude, inputs=2, axes=(2,)
        )

    def measure(self) -> None:
        """Write the norms."""
        if self.order == 1:
            torch.abs(self.direction, out=self.magnitude)
            torch.sum(self.magnitude, dim=-1, out=self.numbers.norm)
        else:
            torch.linalg.vector_norm(self.direction, dim=-1, out=self.numbers.norm)

    def make(self) -> None:
        """Make the weight; see Eq. (1) and, for the pruning stage, Eq. (5)."""
        torch.mul(self.direction, self._scale, out=self.weight)
        if self.projected is not None:
            self.weight.addcmul_(self.projected.project(), self._share)

    def multiply_out(self) -> None:
        """Write the product of the gradient and the direction of each row."""
        torch.mul(self.gradient, self.direction, out=self._scratch)
        torch.sum(self._scratch, dim=-1, out=self.numbers.along)
        if self.projected is not None:
            self.projected.multiply_out(self.gradient, self.numbers.along_projected)

    def pull_back(self) -> None:
        """Make the gradient ``scale * gradient - normal * d norm``; see Eq. (2)."""
        slope = self.direction
        if self.order == 1:
            slope = torch.sgn(self.direction, out=self._scratch)
        if self.projected is not None:
            off = self.projected.pull_back(self.gradient, self._scale, self._share, self._normal)
            self.gradient.addcmul_(slope, off, value=-1)
            return
        self.gradient.mul_(self._scale).addcmul_(slope, self._normal, value=-1)

    def make_magnitude(self) -> None:
        """Write the magnitudes of the weight."""
        torch.abs(self.weight, out=self.magnitude)

    def signs(self, factor: Tensor) -> Tensor:
        """Return the signs of the directions times a factor for each row."""
        return torch.sgn(self.direction, out=self._scratch).mul_(factor.unsqueeze(-1))
