"""Bounds that hold within a box around a row, where many pieces cannot be in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.certify.rounding import (
    LOST,
    combined_size,
    gamma,
    inflated,
    lifted,
    open_ends,
    without_nan,
)
from psilonnet.certify.seen import seen_box
from psilonnet.functional import largest_piece
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import PlainLayer, PlainNet


def local_moves(
    net: AveragedNet | PlainNet, x: Tensor, radius: Tensor, combinations: Tensor
) -> Tensor:
    """Return how far combinations of averaged outputs can move within a box around each row.

    Interval bounds on the inputs of each layer tell which pieces can be in use anywhere in the
    box. The product of the layers' matrices over these pieces only bounds every path that a move
    can take. Boxes pass through a map of the columns by their ends. The bound is never above the
    global one.

    Parameters
    ----------
    net : AveragedNet or PlainNet
    x : Tensor of shape (rows, in)
    radius : Tensor of shape (rows, in)
        Half the width of the box in each input.
    combinations : Tensor of shape (rows, count, out)

    Returns
    -------
    Tensor of shape (rows, count)
    """
    net = AveragedNet.of(net)
    total = x.new_zeros(combinations.shape[:2])
    for part in net.parts:
        seen = seen_box(part, x, radius)
        for member, weight in enumerate(lifted(part.weight.abs()).tolist()):
            single = part.net.member(member)
            masks = _live_pieces(single, seen.x, seen.radius + seen.rounding)
            moves = _masked_product(single, masks, combinations, seen.radius)
            total += weight * moves + LOST
    return without_nan(inflated(total, net.terms + 2))


def _live_pieces(net: PlainNet, x: Tensor, radius: Tensor) -> list[Tensor | None]:
    """Return for each layer which pieces of its inputs can move in the box: (rows, pieces, in)."""
    spread = radius + ((x.abs() + radius) * gamma(3) + LOST)
    low, high = open_ends(x - spread, x + spread)
    masks: list[Tensor | None] = []
    for layer in net.layers:
        ends = torch.stack((low, high)).unsqueeze(1)  # (2, 1, rows, in)
        bottom, top = (layer.pieces(end).squeeze(0) for end in ends)  # (rows, pieces, in)
        masks.append(None if layer.split == "none" else top > bottom)
        low, high = interval(layer, bottom, top)
    return masks


def interval(layer: PlainLayer, bottom: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the largest output of a layer, raised by the rounding of the sums."""
    w = layer.weight[0].flatten(-2)  # (out, pieces * in)
    middle, half = ((top + bottom) / 2).flatten(-2), ((top - bottom) / 2).flatten(-2)
    center = middle @ w.mT + layer.bias[0]
    size = w.abs()
    g = gamma(w.shape[-1] + 6)
    # One product for the width of the box and for the rounding of the center.
    spread = (1 + g) * ((half + g * middle.abs()) @ size.mT) + g * layer.bias[0].abs() + LOST
    return open_ends(center - spread, center + spread)


def _masked_product(
    net: PlainNet, masks: list[Tensor | None], combinations: Tensor, radius: Tensor
) -> Tensor:
    """Push combinations of outputs down to the inputs, through live pieces only."""
    *lower, last = net.layers
    size, mask = combined_size(combinations, last.weight[0]), masks[-1]  # (rows, count, pieces, in)
    mass = (size if mask is None else size * mask.unsqueeze(1)).amax(dim=-2)
    lost = 0.0  # of any mass, by underflow
    for layer, mask in zip(reversed(lower), reversed(masks[:-1]), strict=True):
        weight = layer.weight[0].abs()  # (out, pieces, in)
        mass = inflated(_through(mass, weight, mask), weight.shape[0])
        lost = 2 * lost * float(weight.amax(dim=1).sum(dim=0).max()) + LOST
    moves = inflated((mass * radius.unsqueeze(1)).sum(dim=-1), radius.shape[-1])
    return moves + 2 * (lost * radius.sum(dim=-1, keepdim=True) + LOST)


def _through(mass: Tensor, weight: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mass at the inputs of a layer, of shape (rows, count, in)."""
    if mask is None:
        return mass @ weight[:, 0]
    if weight.shape[1] == 1:
        return (mass @ weight[:, 0]) * mask
    alone = mask.sum(dim=1, keepdim=True) <= 1  # (rows, 1, in)
    several = mass @ largest_piece(weight)
    single = sum((mass @ weight[:, t]) * mask[:, t : t + 1] for t in range(weight.shape[1]))
    return torch.where(alone, single, several)
