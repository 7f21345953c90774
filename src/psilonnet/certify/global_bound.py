"""Bounds that hold everywhere: how far combinations of outputs can move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.certify.rounding import combined_size, inflated, lifted, without_nan
from psilonnet.functional import largest_piece

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.certify.box import Box, Jump
    from psilonnet.certify.combinations import Combinations
    from psilonnet.nn import PlainLayer, PlainNet


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


def global_moves(net: PlainNet, x: Tensor, box: Box, asked: Combinations) -> Tensor:
    """Return how far combinations of averaged outputs can move, of shape (rows, count)."""
    per_unit = input_moves(net, asked.table)
    moves = inflated(box.radius @ per_unit.mT, box.radius.shape[-1])
    for jump in box.jumps:
        moves = moves + _jump_moves(net, x, jump, asked.table)
    return moves.gather(1, asked.index)


def _jump_moves(net: PlainNet, x: Tensor, jump: Jump, combinations: Tensor) -> Tensor:
    """Return how far a jump from its state at each row can move combinations: (rows, kinds)."""
    first = net.layers[0]
    own, states = torch.as_tensor(jump.places), torch.as_tensor(jump.states)
    inputs = x.new_zeros(len(states), x.shape[1])
    inputs[:, own] = states
    pieces = first.pieces(inputs.expand(len(first.weight), -1, -1))[..., own]
    reached = torch.einsum("mrsi,mosi->mro", pieces, first.weight[..., own])
    change = (reached.unsqueeze(1) - reached.unsqueeze(2)).abs()  # (members, from, to, width)
    masses = first_masses(net, combinations)
    farthest = torch.einsum("mftw,mcw->ftc", change, masses) / len(masses)
    table = inflated(farthest.amax(dim=1), change.shape[-1] + len(masses) + len(own))
    here = (x[:, own].unsqueeze(1) == states).all(dim=-1)
    return table[here.long().argmax(dim=1)]


def _masses(layers: list[PlainLayer], combinations: Tensor) -> Tensor:
    """Return how far combinations move per unit of an input of the first of these layers."""
    *lower, last = layers
    mass = combined_size(combinations, last.weight).amax(dim=-2)  # (members, count, in)
    for layer in reversed(lower):
        matrix = lifted(largest_piece(layer.weight))  # (members, out, in)
        mass = inflated(lifted(mass) @ matrix, matrix.shape[-2])
    return without_nan(mass)
