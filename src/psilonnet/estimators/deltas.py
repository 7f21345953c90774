"""How far columns may move: from the user's units to the encoded columns of each row."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.certify.rounding import UNIT
from psilonnet.estimators.parameters import is_real
from psilonnet.tables import DAY, CategoryCode, NumberCode
from psilonnet.tables.codes import FAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psilonnet.tables import TableEncoder

Array = np.ndarray[Any, Any]
ANY = "any"
DAYS = ("time", "duration")  # kinds of columns whose unit is a day


@dataclass(frozen=True)
class Moves:
    """What may move.

    Attributes
    ----------
    radius : ndarray of shape (rows, encoded columns)
        How far each encoded column may move continuously.
    jumps : list of int
        Columns of the table that may take any value at all.
    """

    radius: Array
    jumps: list[int]


def moves_of(delta: Any, encoder: TableEncoder, encoded: Array) -> Moves:
    """Translate an amount, or amounts per column, into moves of encoded columns.

    Parameters
    ----------
    delta : float, array-like of shape (columns,), or dict from column name to amount
        A number is in standard deviations (in the scale of each column) and moves all numbers;
        an array or dict holds amounts in the column's own unit. A column may move "any" way.
    encoder : TableEncoder
    encoded : ndarray of shape (rows, encoded columns)
    """
    amounts = _amounts(delta, encoder)
    radius = np.zeros_like(encoded)
    blur = blur_of(encoder)
    jumps = []
    for k, (code, amount) in enumerate(zip(encoder.codes, amounts, strict=True)):
        own = encoder.places[k]
        if isinstance(amount, str):
            if len(own):
                jumps.append(k)
        elif isinstance(code, NumberCode) and code.scale > 0 and amount > 0:
            z = encoded[:, own[0]]
            move = min(amount * code.slope, 2 * FAR)  # encoded numbers lie within FAR
            # The rounding of (x - center) / scale, before and after the move.
            move = move + 8 * UNIT * (np.abs(z) + 2 * move + 1) + blur[own[0]]
            missing = encoded[:, own[1]] > 0 if len(own) > 1 else np.zeros(len(z), dtype=bool)
            radius[:, own[0]] = np.where(missing, 0.0, move)
    return Moves(radius, jumps)


def blur_of(encoder: TableEncoder) -> Array:
    """Return how far reading a cell, before and after a move, can move each encoded column.

    Large numbers are rounded, and times cut to milliseconds.
    """
    blur = np.zeros(encoder.width)
    for k, (code, kind) in enumerate(zip(encoder.codes, encoder.kinds, strict=True)):
        if isinstance(code, NumberCode) and code.scale > 0:
            cut = 1 / DAY if kind in DAYS else 0.0
            blur[encoder.places[k][0]] = (8 * UNIT * abs(code.center) + cut) * code.slope
    return blur


def _amounts(delta: Any, encoder: TableEncoder) -> list[Any]:
    """Return an amount in its own unit, or "any", for each column."""
    n = len(encoder.names)
    if hasattr(delta, "keys"):  # a dict, or a pandas Series
        return _from_names(delta, encoder)
    if isinstance(delta, str):
        raise ValueError(
            f"A 'delta' in words is for one column: give a dict such as {{'city': 'any'}}. Got "
            f"{delta!r}."
        )
    if np.ndim(delta) == 0:
        amount = delta.item() if isinstance(delta, np.ndarray) else delta
        if not (is_real(amount) and amount >= 0):
            raise ValueError(
                "A 'delta' for all columns is a number of standard deviations, finite and at least "
                f"0. Got {delta!r}: amounts in the columns' own units go into a dict."
            )
        scales = [c.scale if isinstance(c, NumberCode) else 0.0 for c in encoder.codes]
        return [float(amount) * scale for scale in scales]
    values = list(delta)
    if len(values) != n:
        raise ValueError(
            f"An array 'delta' must have one amount for each of the {n} columns. Got {len(values)}."
        )
    return [
        _checked(name, value, kind)
        for name, value, kind in zip(encoder.names, values, encoder.kinds, strict=True)
    ]


def _from_names(delta: Mapping[Any, Any], encoder: TableEncoder) -> list[Any]:
    unknown = [name for name in delta.keys() if str(name) not in encoder.names]  # noqa: SIM118
    if unknown:
        raise ValueError(
            f"The names in 'delta' must be columns of the table. These are not: {unknown}. The "
            f"columns are {list(encoder.names)}."
        )
    given = {str(name): value for name, value in delta.items()}
    return [
        _checked(name, given.get(name, 0.0), kind)
        for name, kind in zip(encoder.names, encoder.kinds, strict=True)
    ]


def _checked(name: str, given: Any, kind: str) -> Any:
    if isinstance(given, str) and given == ANY:
        return given
    # NumPy's own conversion of a pandas Timedelta drops its nanoseconds.
    amount = given.to_timedelta64() if hasattr(given, "to_timedelta64") else given
    if isinstance(amount, (datetime.timedelta, np.timedelta64)):
        amount = np.timedelta64(amount) / np.timedelta64(1, "D") if kind in DAYS else None
    if is_real(amount) and amount >= 0 and (kind != "category" or amount == 0):
        return float(amount)
    raise ValueError(
        f"The delta of column {name!r} (kind {kind!r}) must be a number of at least 0 for numbers, "
        "a number of days or a timedelta of at least 0 for times and durations, 0 or 'any' for "
        f"categories. Got {given!r}."
    )


def jump_columns(encoder: TableEncoder, k: int) -> tuple[Array, Array]:
    """Return the encoded columns of column k, and all rows of values that they can take.

    Only categories jump.
    """
    own = encoder.places[k]
    code = encoder.codes[k]
    if isinstance(code, CategoryCode):
        states = np.array([[-1.0], [1.0], [0.0]]) if code.is_sign else np.eye(len(own))
        if not code.is_sign:
            states = np.concatenate([states, np.zeros((1, len(own)))])  # none of the levels
        return own, states
    raise ValueError(
        f"Only a category can move in any way. Column {encoder.names[k]!r} holds numbers: give the "
        "amount by which it may move."
    )
