"""From any table to columns: numbers as floats with NaN, everything else as words with None."""

from __future__ import annotations

import datetime
import math
import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Kind = Literal["number", "time", "duration", "category"]
Floats = np.ndarray[Any, np.dtype[np.float64]]

DAY = 86_400_000.0  # milliseconds


class LossWarning(UserWarning):
    """Something that a table holds is lost on its way to numbers."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "time", "duration", "category"}
        Times are numbers of days since 1970, durations numbers of days, both cut to milliseconds;
        booleans are categories.
    values : ndarray of shape (rows,)
        Floats with NaN for a missing cell, or for categories an object array of str with None.
    is_declared : bool
        Whether the type of the column says that its values are categories, whatever they look like.
    differs : bool
        Whether cells were different that are the same, or nearly so, as floats.
    strays : str
        What words there are in a category of which most cells were numbers, as a sentence has it.
    """

    name: str
    kind: Kind
    values: np.ndarray[Any, Any]
    is_declared: bool = False
    differs: bool = False
    strays: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a value."""
        if self.kind == "category":
            return all(value is None for value in self.values)
        return bool(np.isnan(self.values).all())

    def take(self, rows: np.ndarray[Any, Any]) -> Column:
        """Return some rows of the column."""
        return replace(self, values=self.values[rows])


def read_columns(table: Any) -> list[Column]:
    """Return the columns of a pandas, polars or Arrow table, or of a two-dimensional array.

    Columns of an array are named x0, x1, ...

    Examples
    --------
    >>> import numpy as np
    >>> [column.kind for column in read_columns(np.array([[1.5, "a"], [None, "b"]], dtype=object))]
    ['number', 'category']
    """
    table = unmasked(table)
    if isinstance(table, np.ndarray):
        names = [f"x{k}" for k in range(table.shape[1])]
        columns = [_from_array(n, v) for n, v in zip(names, table.T, strict=True)]
    else:
        frame = nw.from_native(table, eager_only=True)
        columns = [_from_series(str(series.name), series) for series in frame.iter_columns()]
    for column in columns:
        _check_finite(column)
    return columns


def unmasked(values: Any) -> Any:
    """Return a masked array, or a dictionary of Arrow, so that NumPy sees what is missing.

    It takes the number under a mask, and some level for a missing cell of a dictionary.
    """
    kind: Any = getattr(values, "type", None)
    if hasattr(kind, "index_type"):
        return values.cast(kind.value_type)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if values.dtype.kind in "mM":  # as objects, those in nanoseconds are whole numbers
        return values.filled(values.dtype.type("NaT"))
    cells = values.data.astype(object)
    cells[np.ma.getmaskarray(values)] = None
    return cells


def _check_finite(column: Column) -> None:
    if column.kind != "category" and np.isinf(column.values).any():
        row = int(np.isinf(column.values).argmax())
        raise ValueError(
            f"Numbers must be finite or missing. Column {column.name!r} contains infinity in row "
            f"{row}. Replace it by a number or by NaN, which counts as missing."
        )


def _from_array(name: str, values: np.ndarray[Any, Any]) -> Column:
    if values.dtype == object:
        return _from_objects(name, values)
    if values.dtype.kind in "mM":
        days = values.astype("datetime64[ms]" if values.dtype.kind == "M" else "timedelta64[ms]")
        floats = np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(float) / DAY)
        kind: Kind = "time" if values.dtype.kind == "M" else "duration"
        known = values[~np.isnat(values)]
        return Column(
            name, kind, floats, differs=_differs(floats, lambda: len(set(known.tolist())))
        )
    if values.dtype.kind in "USb":
        return Column(name, "category", values.astype(str).astype(object))
    floats = values.astype(float)
    differs = values.dtype.kind in "iu" and _differs(floats, lambda: len(set(values.tolist())))
    return Column(name, "number", floats, differs=differs)


def _differs(floats: Floats, distinct: Callable[[], int]) -> bool:
    """Whether there are distinct cells where all floats are equal, but for 1e-13 of their size."""
    known = floats[~np.isnan(floats)]
    near = len(known) > 0 and np.ptp(known) <= 1e-13 * np.abs(known).max()
    return bool(near) and distinct() > 1


def _from_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        wide = str(dtype) in ("Int128", "UInt128")  # NumPy has none
        floats = _floats(series.cast(nw.Float64) if wide else series)
        differs = dtype.is_integer() and _differs(floats, series.drop_nulls().n_unique)
        return Column(name, "number", floats, differs=differs)
    if dtype in (nw.Datetime, nw.Date):
        stamps = series.cast(nw.Datetime("ms")) if dtype == nw.Date else series
        floats = _floats(stamps.dt.timestamp("ms")) / DAY
        return Column(name, "time", floats, differs=_differs(floats, series.drop_nulls().n_unique))
    if dtype == nw.Duration:
        return _from_array(name, series.to_numpy())
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object, nw.Unknown):
        objects = np.empty(len(series), dtype=object)
        objects[:] = series.to_list()
        # The type of the column decides, not the values that happen to be in it.
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            words = words_of(objects, missing_cells(objects))
            return Column(name, "category", words, is_declared=dtype != nw.String)
        return _from_objects(name, objects)
    raise TypeError(
        "A column must hold numbers, booleans, words, categories or dates. "
        f"Column {name!r} holds {dtype} instead: turn it into such columns."
    )


def _floats(series: nw.Series[Any]) -> Floats:
    values = series.to_numpy()
    if values.dtype.kind in "fiu":  # a missing cell is NaN already
        return np.array(values, dtype=np.float64)
    missing = series.is_null().to_numpy().astype(bool)
    filled: Floats = np.asarray(series.fill_null(0).cast(nw.Float64).to_numpy(), dtype=float).copy()
    filled[missing] = np.nan
    return filled


def missing_cells(values: Iterable[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell which cells are None, NaN, NaT or pandas' NA."""
    names = ("NoneType", "NAType", "NaTType")
    flags = [
        type(v).__name__ in names or (isinstance(v, (float, np.floating)) and math.isnan(v))
        for v in values
    ]
    return np.array(flags, dtype=bool)


def _from_objects(name: str, values: np.ndarray[Any, Any]) -> Column:
    """Find out what an object column holds by looking at every cell."""
    missing = missing_cells(values)
    present = values[~missing]
    if len(present) and all(isinstance(v, (datetime.timedelta, np.timedelta64)) for v in present):
        spans = np.full(len(values), np.timedelta64("NaT"), dtype="timedelta64[ms]")
        spans[~missing] = [np.timedelta64(v, "ms") for v in present]
        return _seen(_from_array(name, spans), present)
    if all(isinstance(v, numbers.Number) and not isinstance(v, (bool, np.bool_)) for v in present):
        floats = np.full(len(values), np.nan)
        floats[~missing] = [_as_float(name, v) for v in present]
        column = Column(name, "number", floats)
        whole = all(isinstance(v, numbers.Integral) for v in present)
        return _seen(column, present) if whole else column
    if all(isinstance(v, (datetime.date, np.datetime64)) for v in present):
        _check_zones(name, present)
        stamps = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[ms]")
        stamps[~missing] = [np.datetime64(_naive(v), "ms") for v in present]
        return _seen(_from_array(name, stamps), present)
    strange = next((v for v in present if not isinstance(v, (str, numbers.Number))), None)
    if strange is not None and not isinstance(strange, np.bool_):
        raise TypeError(
            "The cells of a column must be of one kind: numbers, words, dates or durations. In "
            "a column of words each argument must be a string or a number. Column "
            f"{name!r} holds {strange!r} of type {type(strange).__name__} among others: turn all "
            "of its cells into words, or this kind into missing cells."
        )
    return Column(name, "category", words_of(values, missing), strays=_strays(present))


def _seen(column: Column, present: np.ndarray[Any, Any]) -> Column:
    """Return a column that knows whether its cells differed."""
    return replace(column, differs=_differs(column.values, lambda: len(set(present))))


def _strays(present: np.ndarray[Any, Any]) -> str:
    """Return how many words there are among numbers, with an example; "" if they are half or more.

    Booleans are neither.
    """
    words = [v for v in present if isinstance(v, str)]
    counted = [v for v in present if not isinstance(v, (str, bool, np.bool_))]
    if not words or 2 * len(counted) <= len(present):
        return ""
    return f" ({len(words)} of {len(present)} cells, such as {words[0]!r})"


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except TypeError:
        raise ValueError(f"Complex data not supported: column {name!r} holds {value!r}.") from None
    except OverflowError:
        raise ValueError(
            f"Numbers must be below 1.8e308. Column {name!r} holds a larger one: use words."
        ) from None


def _check_zones(name: str, moments: np.ndarray[Any, Any]) -> None:
    zones = [v.tzinfo is not None for v in moments if isinstance(v, datetime.datetime)]
    if any(zones) and not all(zones):
        raise ValueError(
            "All times of a column must have a time zone, or none. Column "
            f"{name!r} holds {zones.count(True)} with one and {zones.count(False)} without: give "
            "all the same."
        )


def _naive(moment: Any) -> Any:
    """Return a moment without its time zone, in UTC."""
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        # In UTC the year can be 10000, which Python does not know.
        return np.datetime64(moment.replace(tzinfo=None)) - np.timedelta64(moment.utcoffset())
    return moment


def words_of(
    values: np.ndarray[Any, Any], missing: np.ndarray[Any, np.dtype[np.bool_]]
) -> np.ndarray[Any, Any]:
    """Return the word of each cell, and None for those that are missing."""
    words = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        words[row] = None if missing[row] else word_of(value)
    return words


def word_of(value: Any) -> str:
    """Return the word of a level: whole numbers look the same whatever their type.

    >>> word_of(1), word_of(1.0), word_of(True), word_of("1.0")
    ('1', '1', 'True', '1.0')
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)
