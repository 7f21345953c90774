"""Normalised weight rows of some members, and the way back to their directions.

It computes what :mod:`psilonnet.functional.normalized_linear` does, but for all rows of one length
in one call each, and into memory that is kept from step to step.
"""

from __future__ import annotations

import torch
from torch import Tensor


class FirstRows:
    """The rows of the first layer, with their outputs last in memory.

    What the rows share, and what the pieces of an input share, is then read in order.

    Parameters
    ----------
    direction, gradient : Tensor of shape (members, pieces, in, out)
        The gradient is that of the weight, until :meth:`pull_back`.
    order : {1, 2}
        Of the norm.
    """

    def __init__(self, direction: Tensor, gradient: Tensor, order: int) -> None:
        self.direction, self.gradient, self.order = direction, gradient, order
        self.split = direction.shape[1] > 1
        self.weight, self._magnitude, self._scratch = (
            torch.empty_like(direction, memory_format=torch.contiguous_format) for _ in range(3)
        )
        self._largest = torch.empty_like(self.weight[:, :1]) if self.split else self._magnitude
        self._count = torch.empty_like(self._largest)
        self._mass = self._largest.squeeze(1)  # (members, in, out)
        self._products = self._scratch.flatten(1, 2)

    def norm(self, out: Tensor) -> None:
        """Write the norm of each row, of shape (members, out)."""
        torch.abs(self.direction, out=self._magnitude)
        if self.split:
            torch.amax(self._magnitude, dim=1, keepdim=True, out=self._largest)
        if self.order == 1:
            torch.sum(self._mass, dim=1, out=out)
        else:
            torch.sum(self._mass.square(), dim=1, out=out).sqrt_()

    def scale(self, factor: Tensor) -> None:
        """Make the weight, the direction times a factor for each row; see Eq. (1)."""
        torch.mul(self.direction, factor[:, None, None], out=self.weight)

    def along(self, out: Tensor) -> None:
        """Write the product of the gradient and the direction of each row."""
        torch.mul(self.gradient, self.direction, out=self._scratch)
        torch.sum(self._products, dim=1, out=out)

    def pull_back(self, factor: Tensor, normal: Tensor) -> None:
        """Make the gradient ``factor * gradient - normal * d norm``; see Eq. (2)."""
        if self.order == 1:
            slope = self._signs()
        else:
            slope = self._shares().mul_(self.direction) if self.split else self.direction
        self.gradient.mul_(factor[:, None, None])
        self.gradient.addcmul_(slope, normal[:, None, None], value=-1)

    def reach(self, factor: Tensor) -> Tensor:
        """Return how far all inputs together can move each row, of shape (members, out)."""
        return self._mass.sum(dim=1).mul_(factor.abs())

    def penalise(self, pull: Tensor) -> None:
        """Add to the gradient that of ``sum(pull * reach)``, for weights of positive factors."""
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
    order : {1, 2}
    """

    def __init__(self, direction: Tensor, gradient: Tensor, order: int) -> None:
        self.direction, self.gradient, self.order = direction, gradient, order
        self.weight, self.magnitude, self._scratch = (
            torch.empty_like(direction, memory_format=torch.contiguous_format) for _ in range(3)
        )

    def norm(self, out: Tensor) -> None:
        """Write the norm of each row, of shape (members, rows)."""
        if self.order == 1:
            torch.abs(self.direction, out=self._scratch)
            torch.sum(self._scratch, dim=-1, out=out)
        else:
            torch.linalg.vector_norm(self.direction, dim=-1, out=out)

    def scale(self, factor: Tensor) -> None:
        """Make the weight, the direction times a factor for each row; see Eq. (1)."""
        torch.mul(self.direction, factor.unsqueeze(-1), out=self.weight)

    def along(self, out: Tensor) -> None:
        """Write the product of the gradient and the direction of each row."""
        torch.mul(self.gradient, self.direction, out=self._scratch)
        torch.sum(self._scratch, dim=-1, out=out)

    def pull_back(self, factor: Tensor, normal: Tensor) -> None:
        """Make the gradient ``factor * gradient - normal * d norm``; see Eq. (2)."""
        slope = self.direction
        if self.order == 1:
            slope = torch.sgn(self.direction, out=self._scratch)
        self.gradient.mul_(factor.unsqueeze(-1))
        self.gradient.addcmul_(slope, normal.unsqueeze(-1), value=-1)

    def make_magnitude(self) -> None:
        """Write the magnitudes of the weight."""
        torch.abs(self.weight, out=self.magnitude)

    def signs(self, factor: Tensor) -> Tensor:
        """Return the signs of the directions times a factor for each row."""
        return torch.sgn(self.direction, out=self._scratch).mul_(factor.unsqueeze(-1))
