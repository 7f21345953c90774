"""Bounds that hold everywhere: how far combinations of outputs can move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.certify.rounding import combined_size, gamma, inflated, lifted, without_nan
from psilonnet.certify.seen import steepest
from psilonnet.functional import largest_piece
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.certify.box import Box, Jump
    from psilonnet.certify.combinations import Combinations
    from psilonnet.nn import Part, PlainLayer, PlainNet


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
    if len(net.layers) == 1:
        return combinations.abs().expand(len(net.layers[0].weight), -1, -1)
    return _masses(net.layers[1:], combinations)


def piece_masses(net: PlainNet, combinations: Tensor) -> Tensor:
    """Return how far combinations of outputs move, per unit of a single piece of an input.

    At any point only one piece of an input moves, so slopes are bounded by these.

    Returns
    -------
    Tensor of shape (members, count, pieces, in)
    """
    first = net.layers[0].weight
    if len(net.layers) == 1:
        return combined_size(combinations, first)
    flat = lifted(first.abs()).flatten(-2)  # (members, width, pieces * in)
    mass = inflated(lifted(first_masses(net, combinations)) @ flat, flat.shape[-2])
    return without_nan(mass).reshape(*mass.shape[:-1], *first.shape[-2:])


def input_moves(net: AveragedNet | PlainNet, combinations: Tensor) -> Tensor:
    """Return how far combinations of averaged outputs move, per unit of an encoded column.

    The mass of a column in a network is multiplied by the steepest slope of the map in front.

    Returns
    -------
    Tensor of shape (count, in)
    """
    net = AveragedNet.of(net)
    total = combinations.new_zeros(len(combinations), net.columns, dtype=torch.float64)
    for part in net.networks:
        masses = lifted(_part_masses(part, combinations))
        weighted = lifted(part.weight.abs()) @ masses.flatten(1)  # no product of these is lost
        slope = lifted(steepest(part.columns, torch.ones_like(part.columns.scale)))
        moves = lifted(weighted.reshape(masses.shape[1:])) * slope
        total.index_add_(1, part.inputs, inflated(moves, part.members + 2))
    return without_nan(inflated(total, len(net.parts)))


def _part_masses(part: Part, combinations: Tensor) -> Tensor:
    """Return how far combinations move per unit of what each network sees: (members, count, in).

    A term that makes a network monotone moves with the same piece, and adds what it is there.
    """
    if part.increasing is None:
        return _masses(part.net.layers, combinations)
    term = combinations.abs().unsqueeze(-1) * part.increasing.abs().unsqueeze(1)
    return inflated(piece_masses(part.net, combinations) + term, 3).amax(dim=-2)


def global_moves(net: AveragedNet, x: Tensor, box: Box, asked: Combinations) -> Tensor:
    """Return how far combinations of averaged outputs can move, of shape (rows, count)."""
    per_unit = input_moves(net, asked.table)
    moves = inflated(box.radius @ per_unit.mT, box.radius.shape[-1])
    for jump in box.jumps:
        moves = moves + _jump_moves(net, x, jump, asked.table)
    return without_nan(moves.gather(1, asked.index))


def _jump_moves(net: AveragedNet, x: Tensor, jump: Jump, combinations: Tensor) -> Tensor:
    """Return how far a jump from its state at each row can move combinations: (rows, kinds)."""
    places, states = torch.as_tensor(jump.places), torch.as_tensor(jump.states)
    inputs = x.new_zeros(len(states), x.shape[1])
    inputs[:, places] = states
    moves = [_jumps_in_part(part, inputs, places, combinations) for part in net.parts]
    farthest = inflated(torch.stack(moves).sum(dim=0), len(moves)).amax(dim=1)
    here = (x[:, places].unsqueeze(1) == states).all(dim=-1)
    return farthest[here.long().argmax(dim=1)]


def _jumps_in_part(part: Part, inputs: Tensor, places: Tensor, combinations: Tensor) -> Tensor:
    """Return how far a part moves combinations from each state to each: (from, to, kinds).

    Columns that jump are never bent.
    """
    first = part.net.layers[0]
    own = torch.isin(part.inputs, places).nonzero().squeeze(1)  # a part may read some of them
    pieces = first.pieces(part.see(inputs).expand(part.members, -1, -1))[..., own]
    weight = first.weight[..., own]
    reached = torch.einsum("mrsi,mosi->mro", pieces, weight)
    size = torch.einsum("mrsi,mosi->mro", pieces.abs(), weight.abs())
    terms = gamma(weight[0, 0].numel() + 2) * (size.unsqueeze(1) + size.unsqueeze(2))
    change = (reached.unsqueeze(1) - reached.unsqueeze(2)).abs() + terms  # (m, from, to, width)
    masses = first_masses(part.net, combinations) * part.weight.abs()[:, None, None]
    farthest = torch.einsum("mftw,mcw->ftc", change, masses)
    return inflated(farthest, change.shape[-1] + len(masses) + 4)


def _masses(layers: list[PlainLayer], combinations: Tensor) -> Tensor:
    """Return how far combinations move per unit of an input of the first of these layers."""
    *lower, last = layers
    mass = combined_size(combinations, last.weight).amax(dim=-2)  # (members, count, in)
    for layer in reversed(lower):
        matrix = lifted(largest_piece(layer.weight))  # (members, out, in)
        mass = inflated(lifted(mass) @ matrix, matrix.shape[-2])
    return without_nan(mass)
