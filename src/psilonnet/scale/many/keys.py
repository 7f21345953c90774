"""The keys of groups: what they may be, when two are equal, a safe name and a number for each."""

from __future__ import annotations

import datetime
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.scale.many.hashed import mixed, word_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from psilonnet.scale.many.hashed import Numbers

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


def check_keys(keys: Any, by: str, fitted: str) -> None:
    """Refuse keys that can equal none that models were fitted to, whose type is given by name."""
    kinds = {"int64": "number", "double": "number", "date32[day]": "time", "timestamp[us]": "time"}
    given = str(keys.type)
    if keys.null_count < len(keys) and kinds.get(given, given) != kinds.get(fitted, fitted):
        raise ValueError(
            f"The keys of groups must be of the kind that they were of in fit. Column {by!r} held "
            f"{fitted}, and holds {given} now: convert it first."
        )


def common_type(kinds: Iterable[Any]) -> Any:
    """Return the one type of keys that several parts of a table have between them.

    The parts are as :func:`key_column` returns them; so the result is what it returns for the
    whole table.
    """
    pa = require("pyarrow", "parquet")
    found = set(kinds) - {pa.null()}
    for known in ({pa.int64(), pa.float64()}, {pa.date32(), pa.timestamp("us")}):
        if found == known:
            return next(kind for kind in (pa.float64(), pa.timestamp("us")) if kind in known)
    if len(found) > 1:
        raise TypeError(
            "The keys of groups must be of one kind in all files. They are "
            f"{' here and '.join(sorted(map(str, found)))} there: turn them into words."
        )
    return found.pop() if found else pa.int64()


def key_numbers(keys: Any) -> Numbers:
    """Return a number for each key of an Arrow array, as :func:`key_column` has it.

    Equal keys have one number whatever their type, as they have one name; those that are missing
    have any.
    """
    pa = require("pyarrow", "parquet")
    types, kind = pa.types, keys.type
    if types.is_floating(kind):
        floats = keys.fill_null(0.0).to_numpy(zero_copy_only=False)
        whole = (np.floor(floats) == floats) & (np.abs(floats) < 2.0**63)
        integers = np.where(whole, floats, 0.0).astype(np.int64)
        return mixed(np.where(whole, integers.view(np.uint64), floats.view(np.uint64)))
    if "string" in str(kind):
        return word_numbers(keys)
    if types.is_date(kind):
        keys = keys.cast(pa.timestamp("us"))
    whole = keys.cast(pa.int8() if types.is_boolean(kind) else pa.int64()).cast(pa.int64())
    return mixed(whole.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64))
