"""Bounds that hold everywhere: how far combinations of outputs can move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.certify.rounding import combined_size, inflated, lifted, without_nan
from psilonnet.functional.pieces import largest_piece

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import PlainNet
    from psilonnet.nn.plain import PlainLayer


def first_masses(net: PlainNet, combinations: Tensor) -> Tensor:
    """Return how far combinations of outputs move, per unit of an output of the first layer.

    Parameters
    ----------
    net : PlainNet
    combinations : Tensor of shape (count, out)
        Such as ``e_a - e_b`` for the margin between two classes.

    Returns
    -------
    Tensor of shape (members, count, width)
    """
    return _masses(net.layers[1:], combinations)


def input_moves(net: PlainNet, combinations: Tensor) -> Tensor:
    """Return how far combinations of averaged outputs move, per unit of an input.

    Returns
    -------
    Tensor of shape (count, in)
    """
    moves = _masses(net.layers, combinations)
    return inflated(moves.mean(dim=0), len(moves) + 2)


def _masses(layers: list[PlainLayer], combinations: Tensor) -> Tensor:
    """Return how far combinations move per unit of an input of the first of these layers."""
    *lower, last = layers
    mass = combined_size(combinations, last.weight).amax(dim=-2)  # (members, count, in)
    for layer in reversed(lower):
        matrix = lifted(largest_piece(layer.weight))  # (members, out, in)
        mass = inflated(lifted(mass) @ matrix, matrix.shape[-2])
    return without_nan(mass)
