"""Certificates of a fitted model for given rows, in the units of its table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from psilonnet.certify import first_masses, forward_error, input_moves, local_moves
from psilonnet.certify.rounding import UNIT, inflated
from psilonnet.estimators.deltas import blur_of, jump_columns, moves_of
from psilonnet.nn import plain_net
from psilonnet.tables import NumberCode

if TYPE_CHECKING:
    from psilonnet.estimators.base import BasePSiLON
    from psilonnet.estimators.deltas import Moves
    from psilonnet.tables import TableEncoder

Array = np.ndarray[Any, Any]
METHODS = ("global", "local")
FARTHEST = 1e12  # scales; a model that depends on nothing is certified this far
DOUBLINGS, HALVINGS = 8, 8  # of the search for a local radius, which is found to 0.4 %


@dataclass(frozen=True)
class Combinations:
    """Which combinations of outputs are asked about, for each row.

    Attributes
    ----------
    table : Tensor of shape (kinds, outputs)
    index : Tensor of shape (rows, count)
        Rows of the table.
    """

    table: Tensor
    index: Tensor

    @property
    def expanded(self) -> Tensor:
        """The combinations of each row, of shape (rows, count, outputs)."""
        return self.table[self.index]


class Certifier:
    """The proofs about rows of one table under one model.

    Parameters
    ----------
    model : BasePSiLON
    encoded : ndarray of shape (rows, encoded columns)
    method : {"global", "local"}
    """

    def __init__(self, model: BasePSiLON, encoded: Array, method: str) -> None:
        if method not in METHODS:
            raise ValueError(f"The 'method' must be one of {METHODS}. Got {method!r} instead.")
        self.net = plain_net(model.net_)
        self.encoder: TableEncoder = model.encoder_
        self.encoded = encoded
        self.x = torch.as_tensor(encoded, dtype=torch.float64)
        self.method = method
        self.outputs = self.net(self.x).mean(dim=0)  # (rows, outputs)

    @staticmethod
    def numbers_per_row(model: BasePSiLON, method: str) -> int:
        """Return about how many numbers are in memory for a row: what parts are cut by."""
        outputs = int(model.target_.outputs)
        encoded = model.encoder_.width + outputs**2
        if method != "local":
            return encoded
        # Ends, pieces and masks of the inputs of a layer, and the mass of each combination there.
        layers = plain_net(model.net_).layers
        widest = max(layer.weight.shape[-2] * layer.weight.shape[-1] for layer in layers)
        return encoded + 10 * widest + 4 * outputs * widest

    def moves(self, delta: Any) -> Moves:
        """Return what may move, for an amount in the user's units."""
        return moves_of(delta, self.encoder, self.encoded)

    def unit_box(self) -> Tensor:
        """Return one scale for every number that is not missing, and zero for all else."""
        return torch.as_tensor(self.moves(1.0).radius > 0, dtype=torch.float64)

    def slack(self, radius: Tensor, asked: Combinations) -> Tensor:
        """Return the rounding of two predictions, of shape (rows, count)."""
        error = forward_error(self.net, self.x, radius.amax(dim=-1))
        return 2 * error.unsqueeze(-1) * asked.table.abs().sum(dim=-1)[asked.index]

    def far_moves(self, radius: Tensor, asked: Combinations) -> Tensor:
        """Return how far combinations can move by the global bound, of shape (rows, count)."""
        moves = inflated(radius @ input_moves(self.net, asked.table).mT, radius.shape[-1])
        return moves.gather(1, asked.index)

    def near_moves(self, box: Tensor, asked: Combinations) -> Tensor:
        """Return how far combinations can move by the local bound, of shape (rows, count)."""
        return local_moves(self.net, self.x, box, asked.expanded)

    def largest_moves(self, moves: Moves, asked: Combinations) -> Tensor:
        """Return how far computed combinations of outputs can move, of shape (rows, count)."""
        largest = self.far_moves(torch.as_tensor(moves.radius), asked)
        for column in moves.jumps:
            largest = largest + self._jump(column, asked.table).gather(1, asked.index)
        box = self._with_jumps(moves)
        if self.method == "local":
            largest = torch.minimum(largest, self.near_moves(box, asked))
        return largest + self.slack(box, asked)

    def _with_jumps(self, moves: Moves) -> Tensor:
        """Return a box that holds the jumps as well."""
        box = torch.as_tensor(moves.radius).clone()
        for column in moves.jumps:
            own, states = jump_columns(self.encoder, column)
            box[:, own] = float(np.ptp(states))
        return box

    def _jump(self, column: int, combinations: Tensor) -> Tensor:
        """Return how far a change of level can move combinations, of shape (rows, count)."""
        own, states = jump_columns(self.encoder, column)
        first = self.net.layers[0]
        inputs = self.x.new_zeros(len(states), self.x.shape[1])
        inputs[:, own] = torch.as_tensor(states)
        pieces = first.pieces(inputs.expand(len(first.weight), -1, -1))[..., own]
        reached = torch.einsum("mrsi,mosi->mro", pieces, first.weight[..., own])
        change = (reached.unsqueeze(1) - reached.unsqueeze(2)).abs()  # (members, from, to, width)
        masses = first_masses(self.net, combinations)
        farthest = torch.einsum("mftw,mcw->ftc", change, masses) / len(masses)
        table = inflated(farthest.amax(dim=1), change.shape[-1] + len(masses) + len(own))
        here = (self.x[:, own].unsqueeze(1) == torch.as_tensor(states)).all(dim=-1)
        return table[here.long().argmax(dim=1)]


def certified_radius(certifier: Certifier, margins: Tensor, asked: Combinations) -> Array:
    """Return how many scales all numbers can move without any margin reaching zero.

    Parameters
    ----------
    certifier : Certifier
    margins : Tensor of shape (rows, count)
        The values of the combinations at the rows.
    asked : Combinations
    """
    unit = certifier.unit_box()
    per_scale = certifier.far_moves(unit, asked)
    rough = _least_quotient(margins, per_scale)
    slack = certifier.slack(unit * rough.unsqueeze(-1), asked)
    radius = _least_quotient(margins - slack, per_scale) * (1 - 1e-12)
    if certifier.method == "local":
        radius = _searched(certifier, radius, margins, asked).clamp(max=FARTHEST)
    # What the rounding of the encoding takes away.
    size = certifier.x.abs().amax(dim=-1) + 1
    blur = float(blur_of(certifier.encoder).max())
    safe = (radius - 16 * UNIT * (size + radius) - blur).clamp(min=0.0)
    found: Array = safe.numpy()
    return found


def warn_of_no_numbers(encoder: TableEncoder) -> None:
    """Warn that a radius says nothing where no column can move by an amount."""
    if not any(isinstance(code, NumberCode) and code.scale > 0 for code in encoder.codes):
        pairs = zip(encoder.names, encoder.kinds, strict=True)
        levels = {name: "any" for name, kind in pairs if kind == "category"}
        remedy = f" Ask what a change of level does: delta={levels}." if levels else ""
        warnings.warn(
            "A radius is how far numbers can move, and this table has none that vary: that it is "
            f"huge says nothing.{remedy}",
            UserWarning,
            stacklevel=3,
        )


def _least_quotient(margins: Tensor, per_scale: Tensor) -> Tensor:
    """Return the least quotient of each row; it is undefined, and 0, where nothing is left."""
    quotient = (margins / per_scale).nan_to_num(nan=0.0, posinf=FARTHEST)
    return quotient.amin(dim=-1).clamp(min=0.0, max=FARTHEST)


def _searched(certifier: Certifier, radius: Tensor, margins: Tensor, asked: Combinations) -> Tensor:
    """Return the largest radius found by doubling and halving; never below the global one."""
    unit = certifier.unit_box()

    def holds(trial: Tensor) -> Tensor:
        box = unit * trial.unsqueeze(-1)
        moved = certifier.near_moves(box, asked) + certifier.slack(box, asked)
        return (moved < margins).all(dim=-1)

    low, high = radius, radius * 2
    growing = radius > 0
    for _ in range(DOUBLINGS):
        growing = growing & holds(high)
        if not growing.any():
            break
        low = torch.where(growing, high, low)
        high = torch.where(growing, high * 2, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        good = holds(middle)
        low, high = torch.where(good, middle, low), torch.where(good, high, middle)
    return torch.maximum(low, radius)


def class_margins(outputs: Tensor) -> tuple[Tensor, Combinations]:
    """Return each row's margins over the other classes, and the combinations they come from."""
    n = outputs.shape[1]
    if n == 1:
        sign = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
        return outputs.abs(), Combinations(sign, (outputs <= 0).long())
    eye = torch.eye(n, dtype=torch.float64)
    table = (eye.unsqueeze(1) - eye.unsqueeze(0)).flatten(0, 1)  # row a n + b is e_a - e_b
    pairs = torch.arange(n * n).reshape(n, n)
    others = torch.stack([torch.cat([row[:a], row[a + 1 :]]) for a, row in enumerate(pairs)])
    chosen = outputs.argmax(dim=-1)
    largest = outputs.gather(1, chosen.unsqueeze(1))
    index = others[chosen]  # (rows, n - 1)
    return largest - outputs.gather(1, index % n), Combinations(table, index)


def each_output(rows: int, n: int) -> Combinations:
    """Return every output by itself."""
    return Combinations(torch.eye(n, dtype=torch.float64), torch.arange(n).expand(rows, n))
