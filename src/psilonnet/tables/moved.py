"""A table with some of its cells replaced: the way back from columns to the user's own frame."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from psilonnet.tables.codes import BOOLEANS
from psilonnet.tables.columns import DAY, missing_cells, word_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.tables.columns import Column

Array = np.ndarray[Any, Any]


def with_cells(table: Any, rows: Array, before: Sequence[Column], after: Sequence[Column]) -> Any:
    """Return some rows of a table, of its own type, in which cells have changed.

    Cells that are the same in both columns are kept as they are. Numbers that change become
    float64 with their whole column; times keep their type, but for dates, which become times, and
    for whole seconds, which become milliseconds.

    Parameters
    ----------
    table : data frame, or array of shape (rows, columns)
    rows : ndarray of int
        Which rows are returned.
    before, after : sequence of Column
        All rows as they were read, and as they are to be.
    """
    pairs = [(b.take(rows), a.take(rows)) for b, a in zip(before, after, strict=True)]
    if isinstance(table, np.ndarray):
        return _array(table[rows], pairs)
    frame = nw.from_native(table, eager_only=True)
    chosen = frame[rows.tolist()]
    changed = [
        _series(chosen[name], old, new, frame[name])
        for name, (old, new) in zip(chosen.columns, pairs, strict=True)
        if _changes(old, new).any()
    ]
    return chosen.with_columns(*changed).to_native() if changed else chosen.to_native()


def _changes(old: Column, new: Column) -> Array:
    """Return True for the cells that differ; missing ones are the same."""
    if old.kind == "category":
        return np.array([a != b for a, b in zip(old.values, new.values, strict=True)], dtype=bool)
    return np.asarray((old.values != new.values) & ~np.isnan(new.values))


def _array(table: Array, pairs: Sequence[tuple[Column, Column]]) -> Array:
    out = table.astype(float) if table.dtype.kind in "fiu" else table.copy()
    if table.dtype.kind in "mM":  # no coarser than the moves
        out = table.astype(np.promote_types(table.dtype, f"{table.dtype.kind}8[ms]"))
    for k, (old, new) in enumerate(pairs):
        moved = _changes(old, new)
        if old.kind in ("time", "duration"):
            for row in np.flatnonzero(moved):
                out[row, k] = _later(out[row, k], _shift(old.values[row], new.values[row]))
        elif old.kind == "category":
            known = _known(table[:, k].tolist())
            out[moved, k] = [known.get(word, word) for word in new.values[moved]]
        else:
            out[moved, k] = new.values[moved]
    return out


def _series(series: nw.Series[Any], old: Column, new: Column, whole: nw.Series[Any]) -> Any:
    """Return a column of a frame with its new cells; words are spelt as in the whole column."""
    moved = np.flatnonzero(_changes(old, new))
    if old.kind == "number":
        if series.dtype.is_numeric():
            return series.cast(nw.Float64).scatter(moved.tolist(), new.values[moved].tolist())
        return _made(series, new.values.tolist(), nw.Float64())
    if old.kind == "category":
        if series.dtype in (nw.Categorical, nw.Enum, nw.String):
            return _made(series, new.values.tolist(), nw.String())
        if series.dtype == nw.Boolean:
            fits = [row for row in moved.tolist() if new.values[row] in BOOLEANS]
            return series.scatter(fits, [new.values[row] == "True" for row in fits])
        known, cells = _known(whole.to_list()), series.to_list()
        for row in moved:
            cells[row] = known.get(new.values[row], new.values[row])
        return _made(series, cells, series.dtype)
    shifts = [datetime.timedelta()] * len(series)
    for row in moved:
        shifts[row] = _shift(old.values[row], new.values[row])
    return _shifted(series, shifts)


def _shifted(series: nw.Series[Any], shifts: list[datetime.timedelta]) -> nw.Series[Any]:
    """Return times or durations, moved; in a unit that can hold milliseconds."""
    dtype = series.dtype
    if isinstance(dtype, nw.Date):
        dtype = nw.Datetime("us")
    elif isinstance(dtype, nw.Datetime) and dtype.time_unit == "s":
        dtype = nw.Datetime("ms", dtype.time_zone)
    elif isinstance(dtype, nw.Duration) and dtype.time_unit == "s":
        dtype = nw.Duration("ms")
    if not isinstance(dtype, (nw.Datetime, nw.Duration)):  # objects
        pairs = zip(series.to_list(), shifts, strict=True)
        return _made(series, [_later(cell, by) if by else cell for cell, by in pairs], dtype)
    # A library adds along the line of time, whatever the clocks of a zone show.
    return series.cast(dtype) + _made(series, shifts, nw.Duration(dtype.time_unit))


def _later(cell: Any, shift: datetime.timedelta) -> Any:
    """Return a moment or a duration, moved; a date becomes a moment."""
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime.combine(cell, datetime.time()) + shift
    if isinstance(cell, (np.datetime64, np.timedelta64)):
        return cell + np.timedelta64(shift)
    if getattr(cell, "tzinfo", None) is None:
        return cell + shift
    # With a zone, Python adds to what its clock shows.
    try:
        return (cell.astimezone(datetime.timezone.utc) + shift).astimezone(cell.tzinfo)
    except OverflowError:  # at the end of the year 9999
        return cell


def _made(series: nw.Series[Any], cells: list[Any], dtype: nw.dtypes.DType) -> nw.Series[Any]:
    """Return a column of the name and the library of another."""
    return nw.new_series(series.name, cells, dtype, backend=series.implementation)


def _shift(old: float, new: float) -> datetime.timedelta:
    """Return the move from one number of days to another, in whole milliseconds."""
    return datetime.timedelta(milliseconds=int(np.rint((new - old) * DAY)))


def _known(cells: list[Any]) -> dict[str, Any]:
    """Return the cell of each word."""
    there = [cell for cell, none in zip(cells, missing_cells(cells), strict=True) if not none]
    boolean = all(isinstance(cell, (bool, np.bool_)) for cell in there)
    known: dict[str, Any] = {"True": True, "False": False} if boolean else {}
    return known | {word_of(cell): cell for cell in there}
