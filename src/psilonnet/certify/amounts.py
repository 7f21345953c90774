"""Amounts by which cells may move, as users give them: by name, checked, and in days."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from psilonnet._names import did_you_mean
from psilonnet._numbers import is_real

if TYPE_CHECKING:
    from psilonnet.tables import TableEncoder

ANY = "any"
DAYS = ("time", "duration")  # kinds of columns whose unit is a day
_RULES = {
    "number": "a number of at least 0",
    "category": "'any', or 0 where it stays as it is",
    **dict.fromkeys(DAYS, "a number of days or a timedelta of at least 0"),
}


def checked_share(name: str, share: Any) -> float:
    """Return a share of the cells of a column."""
    amount = _scalar(share)
    if is_real(amount) and amount >= 0:
        return float(amount)
    raise ValueError(
        "A 'relative' amount is a share of the cell, at least 0: 0.02 for 2 %. Got "
        f"{share!r} for {name!r}."
    )


def checked_standard_deviations(given: Any) -> float:
    """Return a number of standard deviations."""
    amount = _scalar(given)
    if is_real(amount) and amount >= 0:
        return float(amount)
    raise ValueError(
        "A 'delta' for all columns is a number of standard deviations, finite and at least 0. Got "
        f"{given!r}: amounts in the columns' own units go into a dict."
    )


def by_name(amounts: Any, encoder: TableEncoder, rows: int) -> dict[str, Any]:
    """Return the amounts of columns by name."""
    if hasattr(amounts, "keys"):
        given = named(amounts)
        return {name: given[name] for name in known_names(given, encoder)}
    if np.ndim(amounts) == 0:
        raise ValueError(
            "The 'amounts' of a Perturbation must be a dict from column name to amount, or an "
            f"array with one for each column. Got {amounts!r}; a number for all columns is one of "
            "'standard_deviations'."
        )
    n = len(encoder.names)
    if np.ndim(amounts) == 2 and np.shape(amounts) == (rows, n):
        values = list(np.asarray(amounts).T)
    else:
        values = list(amounts)
    if len(values) != n or (np.ndim(amounts) > 1 and np.shape(amounts) != (rows, n)):
        raise ValueError(
            f"An array 'delta' must have one amount for each of the {n} columns, or one for each "
            f"column of each of the {rows} rows. Got {np.shape(amounts) or len(values)}."
        )
    return dict(zip(encoder.names, values, strict=True))


def checked_amount(name: str, given: Any, kind: str) -> Any:
    """Return an amount in the unit of its column: a number, or one per row."""
    if not isinstance(given, str) and np.ndim(given) == 1:
        return np.array([checked_amount(name, amount, kind) for amount in np.asarray(given)])
    # NumPy's own conversion of a pandas Timedelta drops its nanoseconds.
    amount = given.to_timedelta64() if hasattr(given, "to_timedelta64") else _scalar(given)
    if isinstance(amount, str) and amount == ANY:
        raise ValueError(
            f"An amount of column {name!r} must be a number or a timedelta. Got 'any', which is "
            f"for a category in all rows: put it into a dict, {{{name!r}: 'any'}}, or name the "
            "column in the 'levels' of a Perturbation."
        )
    if isinstance(amount, (datetime.timedelta, np.timedelta64)):
        amount = _in_days(amount) if kind in DAYS else None
    if is_real(amount) and amount >= 0 and (kind != "category" or amount == 0):
        return float(amount)
    raise ValueError(
        f"The delta of column {name!r} (kind {kind!r}) must be {_RULES[kind]}. Got {given!r}."
    )


def with_names(given: Any) -> Any:
    """Return a polars or Arrow frame as a dict of its columns, and all else as it is."""
    if hasattr(given, "keys"):  # a dict, or a Series or frame of pandas
        return given
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return given
    return {column.name: column.to_numpy() for column in frame.iter_columns()}


def named(given: Any) -> dict[str, Any]:
    """Return a dict or a Series by the names of columns as words, none of them twice."""
    names = [str(name) for name in given.keys()]  # noqa: SIM118 (a Series has values)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"The names in 'delta' must be unique. These occur more than once: {twice}. Give each "
            "column one amount."
        )
    return dict(zip(names, (value for _, value in given.items()), strict=True))


def known_names(names: Any, encoder: TableEncoder) -> list[str]:
    """Return names of columns as words; refuse all others."""
    unknown = [name for name in names if str(name) not in encoder.names]
    if unknown:
        raise ValueError(
            f"The names in 'delta' must be columns of the table. These are not: {unknown}. The "
            f"columns are {list(encoder.names)}.{did_you_mean(unknown, encoder.names)}"
        )
    return [str(name) for name in names]


def _scalar(given: Any) -> Any:
    """Return what an array without axes holds, and all else as it is."""
    return given[()] if isinstance(given, np.ndarray) and given.ndim == 0 else given


def _in_days(amount: Any) -> float | None:
    """Return a timedelta in days; months and years have no length of their own."""
    try:
        return float(np.timedelta64(amount) / np.timedelta64(1, "D"))
    except TypeError:
        return None
