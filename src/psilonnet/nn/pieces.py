"""Layers that split their input first: by ReLU, or at knots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from psilonnet.functional import knots, relu
from psilonnet.nn.linear import LayerSettings, NormalizedLinear

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ReLULinear(NormalizedLinear):
    """The map ``W relu(z) + b``; parameters as :class:`NormalizedLinear` with one piece."""

    def __init__(
        self, in_features: int, out_features: int, **settings: Unpack[LayerSettings]
    ) -> None:
        super().__init__(in_features, out_features, 1, **settings)

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        return super().forward(relu(z).flatten(-2))


class KnotLinear(NormalizedLinear):
    """The map ``sum_t W_t knots_t(x) + b``: a sum of piecewise linear functions of the columns.

    Parameters
    ----------
    edges : Tensor of shape (pieces - 1, in), or (*members, pieces - 1, in)
        Where each column is split; finite and non-decreasing.
    out_features : int
    **settings
        As in :class:`NormalizedLinear`.

    Examples
    --------
    >>> import torch
    >>> layer = KnotLinear(torch.tensor([[-1.0, 0.0], [1.0, 0.5]]), 4)
    >>> layer.pieces, layer(torch.zeros(7, 2)).shape
    (3, torch.Size([7, 4]))
    """

    edges: Tensor

    def __init__(self, edges: Tensor, out_features: int, **settings: Unpack[LayerSettings]) -> None:
        _check_edges(edges)
        super().__init__(edges.shape[-1], out_features, edges.shape[-2] + 1, **settings)
        self.register_buffer("edges", edges.detach().to(self.direction.dtype))

    def split(self, x: Tensor) -> Tensor:
        """Return the pieces of rows, of shape (..., rows, pieces * in)."""
        # An axis for the rows of a batch, where members have edges of their own.
        edges = self.edges if self.edges.dim() == 2 else self.edges.unsqueeze(-3)
        return knots(x, edges).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        if x.dim() == 1 and self.edges.dim() > 2:
            return self.forward(x.unsqueeze(0)).squeeze(-2)
        return super().forward(self.split(x))


def _check_edges(edges: Tensor) -> None:
    if edges.dim() < 2 or edges.shape[-2] < 1:
        raise ValueError(
            "The 'edges' of KnotLinear must have shape (pieces - 1, in) with at least one edge. "
            f"Got shape {tuple(edges.shape)} instead."
        )
    if not bool(edges.isfinite().all()) or bool((edges.diff(dim=-2) < 0).any()):
        raise ValueError(
            "The 'edges' of KnotLinear must be finite and non-decreasing along their first axis. "
            "Sort them, and repeat an edge to leave a piece empty."
        )
