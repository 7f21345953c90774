"""What may move in a row: from the user's units to boxes and jumps of encoded columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psilonnet.certify.amounts import (
    ANY,
    DAYS,
    by_name,
    checked_amount,
    checked_share,
    checked_standard_deviations,
    known_names,
    named,
    with_names,
)
from psilonnet.certify.box import Box, Jump
from psilonnet.certify.rounding import UNIT
from psilonnet.tables import DAY, FAR, CategoryCode, NumberCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from psilonnet.tables import Column, TableEncoder

Array = np.ndarray[Any, Any]
CUT = 1 / DAY  # times and durations are cut to milliseconds
LARGEST = float(np.finfo(np.float64).max)
WHOLE = 2.0**53  # not every whole number beyond it is a float


@dataclass(frozen=True)
class Perturbation:
    """What may move in the rows of a table, and how far.

    If a column is named in several parameters, its amounts are added.

    Parameters
    ----------
    standard_deviations : float, default=0
        For all numbers, in standard deviations of their columns as the encoder scales them.
    amounts : dict from column name to amount, or array-like, optional
        In the columns' own units; days or a timedelta for times and durations. An amount may be an
        array with one number per row, and an array has the shape (columns,) or (rows, columns).
    relative : float, or dict from column name to share, default=0
        A share of the cell itself: 0.02 for 2 %. A single number is for all columns of numbers.
    levels : collection of column names, optional
        Categories that may take any level.

    Examples
    --------
    >>> Perturbation(relative={"price": 0.02}, levels=["city"]).levels
    ['city']
    """

    standard_deviations: Any = 0.0
    amounts: Any = field(default_factory=dict)
    relative: Any = 0.0
    levels: Collection[Any] = ()

    def __post_init__(self) -> None:
        if isinstance(self.levels, str) or not isinstance(self.levels, Collection):
            raise ValueError(
                "The 'levels' of a Perturbation must be a list of names of columns, such as "
                f"['city']. Got {self.levels!r}."
            )
        object.__setattr__(self, "amounts", with_names(self.amounts))

    @classmethod
    def of(cls, delta: Any) -> Perturbation:
        """Return what a short form stands for.

        Parameters
        ----------
        delta : Perturbation, float, array-like, or dict from column name to amount
            A number is in standard deviations; the rest is in the columns' own units. In a dict
            the amount of a category is "any".
        """
        if isinstance(delta, Perturbation):
            return delta
        delta = with_names(delta)
        if hasattr(delta, "keys"):
            given = named(delta)
            levels = [name for name, v in given.items() if isinstance(v, str) and v == ANY]
            return cls(amounts={k: v for k, v in given.items() if k not in levels}, levels=levels)
        if isinstance(delta, str):
            raise ValueError(
                "A 'delta' in words is for one column: give a dict such as {'city': 'any'}. Got "
                f"{delta!r}."
            )
        return cls(standard_deviations=delta) if np.ndim(delta) == 0 else cls(amounts=delta)

    def box(self, encoder: TableEncoder, columns: Sequence[Column], encoded: Array) -> Box:
        """Return how far encoded columns of rows may move, and which columns may jump.

        Parameters
        ----------
        encoder : TableEncoder
        columns : sequence of Column
            The rows as they were read.
        encoded : ndarray of shape (rows, encoded columns)
            The same rows, encoded.
        """
        columns = encoder.matched(columns)
        jumps = [Jump(*_states(encoder, k)) for k in self.jumping(encoder)]
        radius = np.zeros_like(encoded)
        errors = reading_errors(encoder)
        for k, amount in self._amounts_of(encoder, columns, _most_size).items():
            code = cast("NumberCode", encoder.codes[k])
            place, slope = encoder.places[k][0], code.slope
            z = encoded[:, place]
            with np.errstate(over="ignore"):
                move = np.minimum(amount * slope, 2 * FAR)  # encoded numbers lie within FAR
            # The rounding of (x - center) / scale, before and after the move.
            move = move + 8 * UNIT * (np.abs(z) + 2 * move + 1) + errors[place]
            stays = np.isnan(columns[k].values) | (amount <= 0)
            radius[:, place] = np.where(stays, 0.0, move)
        return Box.of(radius, jumps)

    def plain_box(self, x: Tensor) -> Box:
        """Return how far inputs of shape (rows, in) may move; without a table they have no names.

        One standard deviation of an input is 1.
        """
        dicts = [v for v in (self.amounts, self.relative) if hasattr(v, "keys")]
        if any(map(len, (self.levels, *dicts))):
            raise ValueError(
                "Columns can be named only where there is a table. Got names for the inputs of a "
                "network: give a number, or an array of shape (in,) or (rows, in)."
            )
        amounts = 0.0 if hasattr(self.amounts, "keys") else np.asarray(self.amounts, dtype=float)
        share = checked_share("every input", self.relative)
        radius = (
            checked_standard_deviations(self.standard_deviations)
            + amounts
            + share * np.abs(x.numpy())
        )
        radius = np.broadcast_to(radius, x.shape)
        if not (np.isfinite(radius).all() and (radius >= 0).all()):
            raise ValueError(
                "Amounts by which inputs may move must be finite and at least 0. Got "
                f"{self.amounts!r}."
            )
        return Box.of(radius.copy())

    def ranges(
        self, encoder: TableEncoder, columns: Sequence[Column]
    ) -> dict[int, tuple[Array, Array]]:
        """Return the least and the largest cell of each column of numbers that may move.

        They are rounded to the inside: what :meth:`box` rounds outward for a proof, a
        counterexample must not use.
        """
        composed = self.standard_deviations != 0 or hasattr(self.relative, "keys") or self.relative
        share = 1 - 8 * UNIT if composed else 1.0  # the rounding of sums and products
        found = {}
        for k, amount in self._amounts_of(encoder, columns, _least_size).items():
            values = columns[k].values
            move = np.maximum(amount * share - _reading_distance(columns[k]), 0.0)
            with np.errstate(over="ignore", invalid="ignore"):
                low, high = values - move, values + move
                # The exact sum is the computed one plus its rounding error.
                low = np.where(_lost(values, -move, low) > 0, np.nextafter(low, np.inf), low)
                high = np.where(_lost(values, move, high) < 0, np.nextafter(high, -np.inf), high)
            found[k] = np.maximum(low, -LARGEST), np.minimum(high, LARGEST)
        return found

    def jumping(self, encoder: TableEncoder) -> list[int]:
        """Return the columns that may take any level; those that the model ignores need not."""
        names = known_names(self.levels, encoder)
        places = [k for k, name in enumerate(encoder.names) if name in names]
        return [k for k in places if len(encoder.places[k])]

    def _amounts_of(
        self, encoder: TableEncoder, columns: Sequence[Column], size: Callable[[Column], Array]
    ) -> dict[int, Array]:
        """Return how far each column of numbers may move, one amount per row.

        Shares are of the given sizes of the cells of a column.
        """
        rows = len(columns[0].values)
        given = by_name(self.amounts, encoder, rows)
        shares = self._shares(encoder)
        standard_deviations = checked_standard_deviations(self.standard_deviations)
        found = {}
        for k, (name, kind) in enumerate(zip(encoder.names, encoder.kinds, strict=True)):
            own = checked_amount(name, given.get(name, 0.0), kind)
            if np.shape(own) not in ((), (rows,)):
                raise ValueError(
                    "An array as the delta of a column must have one amount for each row. Got "
                    f"{len(own)} for column {name!r} of {rows} rows."
                )
            code = encoder.codes[k]
            if isinstance(code, NumberCode) and code.scale > 0:
                with np.errstate(over="ignore"):  # all that a number can be
                    shared = shares.get(name, 0.0) * size(columns[k])
                    moves = own + standard_deviations * code.scale + shared
                found[k] = np.broadcast_to(np.minimum(moves, LARGEST), rows)
        return found

    def _shares(self, encoder: TableEncoder) -> dict[str, float]:
        moving = [n for n, k in zip(encoder.names, encoder.kinds, strict=True) if k == "number"]
        relative = self.relative
        given = named(relative) if hasattr(relative, "keys") else dict.fromkeys(moving, relative)
        shares = {name: checked_share(name, given[name]) for name in known_names(given, encoder)}
        for name in shares:
            kind = encoder.kinds[encoder.names.index(name)]
            if kind not in ("number", "duration"):
                raise ValueError(
                    "Only numbers and durations can move by a share of themselves. Column "
                    f"{name!r} is of kind {kind!r}: give an amount or a level instead."
                )
        return shares


def _most_size(column: Column) -> Array:
    """Return no less than the sizes of cells as they were before durations were cut."""
    size = np.abs(np.nan_to_num(column.values))
    return np.asarray(size + (CUT if column.kind == "duration" else 0.0))


def _least_size(column: Column) -> Array:
    """Return no more than the same: a duration below 0 is cut away from 0."""
    values = np.nan_to_num(column.values)
    below = np.where(values < 0, CUT if column.kind == "duration" else 0.0, 0.0)
    return np.asarray(np.maximum(np.abs(values) - below, 0.0))


def _reading_distance(column: Column) -> Array:
    """Return how far cells as they were read can be from whole numbers of too many figures."""
    size = np.abs(np.nan_to_num(column.values))
    return np.where((column.kind == "number") & (size >= WHOLE), np.spacing(size), 0.0)


def _lost(a: Array, b: Array, total: Array) -> Array:
    """Return what rounding took away from a sum ``a + b``, exactly."""
    part = total - a
    return np.asarray((a - (total - part)) + (b - part))


def reading_errors(encoder: TableEncoder) -> Array:
    """Return how far reading a cell, before and after a move, can move each encoded column.

    Large numbers are rounded, and times cut to milliseconds.
    """
    errors = np.zeros(encoder.width)
    for k, (code, kind) in enumerate(zip(encoder.codes, encoder.kinds, strict=True)):
        if isinstance(code, NumberCode) and code.scale > 0:
            cut = CUT if kind in DAYS else 0.0
            errors[encoder.places[k][0]] = (8 * UNIT * abs(code.center) + cut) * code.slope
    return errors


def _states(encoder: TableEncoder, k: int) -> tuple[Array, Array]:
    """Return the encoded columns of a category, and all rows of values that they can take."""
    own, code = encoder.places[k], encoder.codes[k]
    if not isinstance(code, CategoryCode):
        raise ValueError(
            f"Only a category can move in any way. Column {encoder.names[k]!r} holds numbers: give "
            "the amount by which it may move."
        )
    if code.is_sign:
        states = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        return own, states if len(own) == 2 else states[:3, :1]
    return own, np.concatenate([np.eye(len(own)), np.zeros((1, len(own)))])  # none of the levels
