"""The keys of groups: what they may be, when two are equal, and a safe name for each."""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from psilonnet._extras import require
from psilonnet.scale.failures import first_line

Integers = np.ndarray[Any, np.dtype[np.int64]]
EXACT = 2**53  # whole numbers below it are exact in float64


def key_name(key: Any) -> str:
    """Return the name of a group: a hash of its key, so that any key is a safe file name.

    Equal keys have one name whatever their type: 3 and 3.0, 0.0 and -0.0, a date and its midnight.
    The word "3" is another key than the number 3.

    >>> key_name(3) == key_name(3.0), key_name(3) == key_name("3"), len(key_name("../store"))
    (True, False, 32)
    """
    return hashlib.sha256(_text(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _text(key: Any) -> str:
    if isinstance(key, datetime.datetime):
        return f"time {key.isoformat()}"
    if isinstance(key, datetime.date):
        return f"time {key.isoformat()}T00:00:00"
    if isinstance(key, float) and key.is_integer():
        return f"int {int(key)}"
    return f"{type(key).__name__} {key}"


@dataclass(frozen=True)
class Groups:
    """The groups of a table in the order of their first rows.

    Attributes
    ----------
    keys : Arrow array of the different keys
    names : list of str
    order : ndarray of row numbers, group by group
    ends : ndarray
        Where each group ends in ``order``.
    missing : ndarray of the rows without a key
    """

    keys: Any
    names: list[str]
    order: Integers
    ends: Integers
    missing: Integers

    @cached_property
    def sizes(self) -> Integers:
        """The number of rows of each group."""
        return np.diff(self.ends, prepend=0)

    def rows(self, group: int) -> Integers:
        """Return the rows of a group, in the order of the table."""
        return self.order[self.ends[group] - self.sizes[group] : self.ends[group]]


def groups_of(column: Any) -> Groups:
    """Return the groups of an Arrow table by its column of keys, as :func:`key_column` has it."""
    codes = column.dictionary_encode()
    keys, indices = codes.dictionary, codes.indices
    numbers = indices.fill_null(len(keys)).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(keys) + 1))
    names = [key_name(key) for key in keys.to_pylist()]
    known = ends[len(keys) - 1] if len(keys) else 0
    return Groups(keys, names, order[:known], ends[:-1], order[known:])


def key_column(table: Any, by: str) -> Any:
    """Return a column of keys: words, whole numbers, numbers, booleans, dates or times.

    Its type depends on all of its values: numbers that are all whole are integers.
    """
    pa = require("pyarrow", "parquet")
    try:
        return _canonical(table, by)
    except pa.ArrowInvalid as error:
        raise ValueError(
            "The keys of groups must be whole numbers of 64 bits with a sign, or times in "
            f"microseconds. Column {by!r} has others ({error}): turn it into words."
        ) from error


def _canonical(table: Any, by: str) -> Any:
    pa = require("pyarrow", "parquet")
    types, compute = pa.types, require("pyarrow.compute", "parquet")
    column = table.column(by).combine_chunks()
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind):
        return column if types.is_boolean(kind) else column.cast(pa.int64())
    if types.is_floating(kind):
        column = compute.if_else(compute.is_nan(column), None, column).cast(pa.float64())
        column = compute.add(column, 0.0)  # -0.0 is 0.0
        whole = compute.and_(
            compute.equal(compute.floor(column), column),
            compute.less(compute.abs(column), float(EXACT)),
        )
        return column.cast(pa.int64()) if compute.all(whole).as_py() is not False else column
    if types.is_timestamp(kind):  # without its zone it counts in UTC
        stamps = column.cast(pa.timestamp("us", kind.tz)).cast(pa.timestamp("us"))
        days = stamps.cast(pa.date32(), safe=False)
        same = compute.all(compute.equal(days.cast(stamps.type), stamps)).as_py()
        return days if same is not False else stamps
    if types.is_date(kind):
        return column.cast(pa.date32())
    if "string" in str(kind):
        return column.cast(pa.string())
    raise TypeError(
        "The keys of groups must be words, numbers, booleans, dates or times. "
        f"Column {by!r} holds {kind} instead: turn it into words."
    )


def as_arrow(table: Any, needed: list[str]) -> Any:
    """Return a pandas, polars or Arrow table as Arrow, with the columns that are needed."""
    if hasattr(type(table), "collect") or not nw.dependencies.is_into_dataframe(table):
        raise TypeError(
            "The table must be a pandas, polars or Arrow table in memory. "
            f"Got {type(table).__name__} instead."
        )
    require("pyarrow", "parquet")
    frame = nw.from_native(table, eager_only=True)
    names = [str(name) for name in frame.columns]  # Arrow has words only
    for name in needed:
        if name not in names:
            raise ValueError(f"The table has no column {name!r}. It has {names}.")
    try:
        # Only columns: the index of a pandas frame is not one.
        arrow = frame.to_arrow().select(names)
        return arrow.combine_chunks().replace_schema_metadata(None)
    except (TypeError, ValueError) as error:  # what Arrow raises for mixed cells
        said = first_line(error)
        raise ValueError(
            f"Each column must hold one kind of cells ({said}): turn such a column into words."
        ) from error
