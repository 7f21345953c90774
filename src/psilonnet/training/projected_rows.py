"""The projected part of weight rows in the pruning stage, and its gradient; see Eq. (4) and (5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class ProjectedRows:
    """Rows of directions, soft-thresholded onto the unit sphere, in memory that is kept.

    Parameters
    ----------
    direction, magnitude : Tensor of shape (members, rows, in) or (members, pieces, in, rows)
        The magnitudes are kept up to date by their owner, and so is the largest.
    largest : Tensor
        The largest magnitude among the pieces of an input, with an axis for the pieces.
    inputs : int
        The axis of the inputs.
    axes : tuple of int
        All axes of a row.

    Attributes
    ----------
    sparse : Tensor
        What :meth:`project` makes of the directions.
    """

    def __init__(
        self,
        direction: Tensor,
        magnitude: Tensor,
        largest: Tensor,
        inputs: int,
        axes: tuple[int, ...],
    ) -> None:
        self.direction, self.magnitude, self.largest = direction, magnitude, largest
        self._inputs, self._axes = inputs, axes
        self.sparse, self._signs, self._active = (torch.empty_like(magnitude) for _ in range(3))
        self._moving = self._active
        self._support, self._products = torch.empty_like(largest), torch.empty_like(magnitude)
        self._shifted, self._terms = torch.empty_like(largest), torch.empty_like(largest)
        self._count = largest.new_empty(())

    def project(self) -> Tensor:
        """Return the projected directions; one that is zero counts as positive."""
        # Shifted so that the largest is 0: what is above the threshold is then at most 1 in size.
        top = self.largest.amax(dim=self._inputs, keepdim=True)
        torch.sub(self.largest, top, out=self._shifted)
        tau = self._find_threshold()
        torch.sub(self.magnitude, top, out=self.sparse).sub_(tau).clamp_(min=0)
        torch.sgn(self.sparse, out=self._active)
        torch.sgn(self.direction, out=self._signs)
        self._moving = self._active
        if bool((top + tau < 0).any()):  # rows inside the ball grow, and what is zero in them too
            self._moving = self._active * self._signs.abs()
            self._signs.copy_(torch.copysign(self._signs.new_ones(()), self.direction))
        return self.sparse.mul_(self._signs)

    def _find_threshold(self) -> Tensor:
        """Return the ``tau`` of each row with ``sum_i max(0, m_i - tau) = 1`` for the shifted m.

        Newton's method, as in :func:`psilonnet.functional.threshold`: from the left it never passes
        the root, and each step leaves out magnitudes below it, until there are no more.
        """
        m, axis = self._shifted, self._inputs
        tau = torch.full_like(m.narrow(axis, 0, 1), -1.0)
        before: Tensor | None = None
        while True:
            torch.gt(m, tau, out=self._support)
            self._count = self._support.sum(dim=axis, keepdim=True)
            if before is not None and not bool((self._count < before).any()):
                return tau
            before = self._count
            torch.mul(self._support, m, out=self._terms)
            total = self._terms.sum(dim=axis, keepdim=True).sub_(1)
            tau = torch.maximum(tau, total.div_(self._count))

    def multiply_out(self, gradient: Tensor, out: Tensor) -> None:
        """Write the product of a gradient and each projected row."""
        torch.mul(gradient, self.sparse, out=self._products)
        torch.sum(self._products, dim=self._axes, out=out)

    def pull_back(self, gradient: Tensor, scale: Tensor, share: Tensor, normal: Tensor) -> Tensor:
        """Turn a gradient of the weight ``scale * v + share * sparse``, but for the largest pieces.

        Parameters
        ----------
        gradient : Tensor
            Becomes ``(scale + share * active) * gradient``.
        scale, share, normal : Tensor that broadcast against it, one number for each row

        Returns
        -------
        Tensor of the shape of ``largest``
            What is to be taken off, times the slope of each largest piece: ``normal`` for the norm,
            and what moves the threshold for those above it.
        """
        torch.mul(self._active, self._signs, out=self._products).mul_(gradient)
        moved = self._products.sum(dim=self._axes, keepdim=True).mul_(share).div_(self._count)
        off = torch.mul(self._support, moved, out=self._support).add_(normal)
        gradient.mul_(self._moving.mul_(share).add_(scale))
        return off
