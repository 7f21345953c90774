"""The global bound of a fitted model in the user's columns and units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from psilonnet.certify.global_bound import input_moves
from psilonnet.certify.rounding import inflated
from psilonnet.nn import AveragedNet
from psilonnet.tables import CategoryCode

if TYPE_CHECKING:
    from torch import Tensor, nn

    from psilonnet.nn import PlainNet
    from psilonnet.tables import TableEncoder

FACTOR_LOG = 20.0  # beyond it, a factor is written as a power
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class ColumnBounds:
    """How far the outputs can move, summed over the outputs, or how far any of them can.

    Attributes
    ----------
    total : float
        If every encoded column moves by at most 1 (one standard deviation of a number).
    per_unit : ndarray of shape (columns,)
        If a number moves by one of its own units, or a category from any level to any other.
    per_standard_deviation : ndarray of shape (columns,)
        If a number moves by one standard deviation, or a category from any level to any other.
    """

    total: float
    per_unit: Floats
    per_standard_deviation: Floats

    def in_words(
        self, encoder: TableEncoder, what_moves: str, *, is_log: bool = False
    ) -> list[str]:
        """Return sentences about all numbers together, and about the most important columns.

        If what moves is the logarithm of a mean, they also tell the factor of the mean.
        """
        is_number = np.array([kind != "category" for kind in encoder.kinds])
        lines = []
        if is_number.any():
            total = self.per_standard_deviation[is_number].sum()
            factor = _factor_words(total) if is_log else ""
            lines = [
                "Proven: if every number moves by at most one standard deviation, "
                "and nothing else moves,",
                f"{what_moves} by at most {_raised(total)}{factor}.",
            ]
        lines.append("The columns that can move it most:")
        days = {"time": "one day", "duration": "one day"}
        units = {"category": "a change of level", "number": "one unit", **days}
        for k in np.argsort(-self.per_standard_deviation)[:5]:
            line = f"  {encoder.names[k]}: at most {_raised(self.per_unit[k])} for "
            line += units[encoder.kinds[k]]
            if is_number[k]:
                line += f", {_raised(self.per_standard_deviation[k])} for one standard deviation"
            lines.append(line)
        return lines


def _raised(value: float) -> str:
    """Return four digits of a limit, which is still one: they are rounded up."""
    if not math.isfinite(value):
        return f"{value}"
    exact = Decimal(float(value))
    rounded = round(exact, 3 - exact.adjusted())
    if float(rounded) < value:
        rounded += Decimal(1).scaleb(exact.adjusted() - 3)
    return f"{rounded:,.0f}" if 10_000 <= rounded < 10**15 else f"{float(rounded):.4g}"


def _factor_words(move: float) -> str:
    factor = _raised(math.exp(move)) if move < FACTOR_LOG else f"exp({_raised(move)})"
    return f", and the mean changes by a factor of at most {factor}"


_KNOWN: WeakKeyDictionary[AveragedNet, Tensor] = WeakKeyDictionary()


def _moves(net: AveragedNet) -> Tensor:
    """Return how far each output can move with each encoded column; it is computed once."""
    if net not in _KNOWN:
        _KNOWN[net] = input_moves(net, torch.eye(net.outputs, dtype=torch.float64))
    return _KNOWN[net]


def column_bounds(
    net: nn.Sequential | PlainNet | AveragedNet,
    encoder: TableEncoder,
    scale: Floats,
    *,
    largest: bool = False,
) -> ColumnBounds:
    """Return the bounds of a model whose outputs are those of the net times a scale.

    Parameters
    ----------
    net : AveragedNet, or what one can be made of
    encoder : TableEncoder
    scale : ndarray of shape (outputs,)
    largest : bool, default=False
        Bound the output that moves most, instead of the sum of the moves of all outputs. This is
        also a bound for each output once they are sorted.
    """
    moves = _moves(AveragedNet.of(net))
    factors = torch.as_tensor(scale)
    asked = factors.diag() if largest else factors.unsqueeze(0)
    sizes = inflated(asked @ moves, len(moves))
    # What is computed from them below takes fewer operations than there are columns, and a few.
    per_input = inflated(sizes, 8 + moves.shape[1]).numpy()  # (outputs or 1, encoded columns)
    per_unit = np.zeros(len(encoder.codes))
    per_standard_deviation = np.zeros(len(encoder.codes))
    for k, code in enumerate(encoder.codes):
        own = per_input[:, encoder.places[k]]
        if isinstance(code, CategoryCode):
            # A change of level moves one column by 2, or two columns by 1 each.
            most = np.sort(own, axis=1)[:, -2:].sum(axis=1)
            most = np.maximum(most, 2 * own[:, 0]) if code.is_sign else most
            per_unit[k] = per_standard_deviation[k] = most.max()
        elif code.scale > 0:
            most = own[:, 0].max()
            per_unit[k], per_standard_deviation[k] = most * code.slope, most
    return ColumnBounds(float(per_input.sum(axis=1).max()), per_unit, per_standard_deviation)
