"""Where the inputs of each layer of a network can be in a box, by interval arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.certify.local_bound import interval
from psilonnet.certify.rounding import LOST, gamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.nn import PlainLayer


@dataclass(frozen=True)
class Range:
    """Where the inputs of a layer are, for each row, and what follows for the layer.

    Attributes
    ----------
    low, high : Tensor of shape (rows, in)
    bottom, top, largest : Tensor of shape (rows, pieces, in)
        The least, the largest and the farthest from 0 of each piece.
    outputs : pair of Tensor of shape (rows, out)
        Intervals of the outputs.
    size : Tensor of shape (rows, out)
        No less than the sum of the magnitudes of the terms of an output.
    """

    low: Tensor
    high: Tensor
    bottom: Tensor
    top: Tensor
    largest: Tensor
    outputs: tuple[Tensor, Tensor]
    size: Tensor

    @property
    def underflow(self) -> Tensor:
        """What underflow in a product of the weights can come to, of shape (rows, 1)."""
        total = self.largest.sum(dim=(1, 2)) + self.size.sum(dim=1)
        return 4 * LOST * (1 + total).unsqueeze(-1)


def layer_range(
    layer: PlainLayer, low: Tensor, high: Tensor, states: Sequence[Tensor] = ()
) -> Range:
    """Return the range of a layer of one member from the ends of its inputs.

    Columns may jump besides, which only a first layer sees: their states are as in
    :class:`InputBox`.
    """
    ends, weight = (low, high), layer.weight[0].flatten(-2)
    bottom, top, *jumps = (layer.pieces(x.unsqueeze(0)).squeeze(0) for x in (*ends, *states))
    low, high = interval(layer, bottom, top)
    largest = torch.maximum(bottom.abs(), top.abs())
    g = gamma(weight.shape[-1] + 8)
    for own in jumps:
        reached = own.flatten(-2) @ weight.mT  # (states, out)
        slack = g * (own.flatten(-2).abs() @ weight.abs().mT).amax(dim=0) + LOST
        low = low + (reached.amin(dim=0) - slack)
        high = high + (reached.amax(dim=0) + slack)
        spread = gamma(4) * (low.abs() + high.abs() + reached.abs().amax(dim=0))
        low, high = low - spread, high + spread
        largest = torch.maximum(largest, own.abs().amax(dim=0))
    largest = largest * (1 + gamma(2)) + LOST
    size = (largest.flatten(-2) @ weight.abs().mT + layer.bias[0].abs()) * (1 + g) + LOST
    return Range(*ends, bottom, top, largest, (low, high), size)
