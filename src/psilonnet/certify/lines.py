"""Lines below functions with one kink, on intervals: where each layer becomes a linear bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from psilonnet.certify.rounding import LOST, gamma

if TYPE_CHECKING:
    from psilonnet.certify.ranges import Range
    from psilonnet.nn import PlainLayer


class Lines(NamedTuple):
    """Lines ``slope z + offset`` below a function of each coordinate; offsets are summed up.

    Attributes
    ----------
    slope : Tensor of shape (rows, count, in)
    offset : Tensor of shape (rows, count)
    lost : Tensor of shape (rows, count)
        By how much rounding can have put them above the function, in all.
    """

    slope: Tensor
    offset: Tensor
    lost: Tensor


def lines_below(layer: PlainLayer, pieces: Tensor, own: Range, *, even: bool = False) -> Lines:
    """Return lines below combinations of the pieces of coordinates.

    A combination of the pieces of ReLU or CReLU is ``q z + d max(z, 0)``. Where the interval is on
    one side of 0, that is its own line. Where it bends up (d > 0), every slope between q and q + d
    makes a line below it through 0. Where it bends down, the line goes through both ends.

    Parameters
    ----------
    layer : PlainLayer of one member
    pieces : Tensor of shape (rows, count, pieces * in)
    own : Range
        Where the inputs of the layer are.
    even : bool, default=False
        Where the function bends up, take the slope of the line through both ends; else that of
        the longer side.
    """
    if layer.split == "none":
        zero = pieces.new_zeros(pieces.shape[:2])
        return Lines(pieces, zero, zero)
    if layer.split == "knots":
        return _level(pieces, own)
    low, high = own.low, own.high
    bent = (low < 0) & (high > 0)
    right = (low >= 0).double()
    long = torch.where(bent, (high > -low).double(), right).unsqueeze(1)
    width = high - low
    # Where the width overflows the quotient is 0, which is no slope of the line through both ends.
    part = torch.where(width < torch.inf, high / width, torch.nan)
    share = torch.where(bent, part, right).unsqueeze(1)
    drop = torch.where(bent, -low * part + LOST, 0.0)
    reach = torch.maximum(low.abs(), high.abs())
    if layer.split == "relu":
        bend, size = pieces, pieces.detach().abs() @ reach.unsqueeze(-1)
    else:
        right_slope, left_slope = pieces.chunk(2, dim=-1)
        bend = right_slope - left_slope
        size = pieces.detach().abs() @ torch.cat((reach, 2 * reach), dim=-1).unsqueeze(-1)
    above, below = bend.clamp(min=0), bend.clamp(max=0)
    slope = torch.addcmul(above * (share if even else long), below, share)
    slope = slope if layer.split == "relu" else slope + left_slope
    offset = (below @ drop.unsqueeze(-1)).squeeze(-1)
    g = 2 * gamma(low.shape[-1] + 8)
    lost = (g * size).squeeze(-1) + LOST * (2 + reach.sum(dim=-1, keepdim=True))
    return Lines(slope, offset, lost)


def _level(pieces: Tensor, own: Range) -> Lines:
    """Return level lines: only first layers have knots, so nothing better is needed."""
    bottom, top = own.bottom.flatten(-2).unsqueeze(1), own.top.flatten(-2).unsqueeze(1)
    offset = torch.minimum(pieces * bottom, pieces * top).sum(dim=-1)
    size = (pieces.detach().abs() @ own.largest.flatten(-2).unsqueeze(-1)).squeeze(-1)
    slope = pieces.new_zeros(*pieces.shape[:2], own.low.shape[-1])
    return Lines(slope, offset, gamma(pieces.shape[-1] + 4) * size + LOST)


def largest_gaps(layer: PlainLayer, pieces: Tensor, own: Range) -> Tensor:
    """Return about how far lines are from their functions: (rows, count, in), for ReLU and CReLU.

    It is 0 where the interval is on one side of 0; there is nothing to branch on.
    """
    if layer.split not in ("relu", "crelu"):
        return pieces.new_zeros(*pieces.shape[:2], own.low.shape[-1])
    low, high = own.low, own.high
    bent = (low < 0) & (high > 0)
    height = torch.where(bent, -low * (high / (high - low)), 0.0).nan_to_num(0.0)
    bend = pieces if layer.split == "relu" else torch.sub(*pieces.chunk(2, dim=-1))
    return bend.abs() * height.unsqueeze(1)
