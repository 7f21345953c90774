"""Which rows a model was fitted to, in a few letters."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.scale.many.hashed import mixed, numbers_of, word_numbers

if TYPE_CHECKING:
    from psilonnet.scale.many.groups import Groups
    from psilonnet.scale.many.hashed import Numbers


def digests_of(rows: Any, groups: Groups, by: str, target: str) -> list[str]:
    """Return a digest of the rows of each group of an Arrow table.

    It covers the names, kinds and values of all columns but the keys, and how often each row
    occurs; rows without a target do not count. The values are those that a model reads: numbers
    in float64, times in milliseconds, all else as words. Like a model, it depends neither on the
    order of the rows nor on the types and chunks that hold them.
    """
    known = has_value(rows.column(target)).to_numpy()
    numbers = np.zeros(len(rows), dtype=np.uint64)  # of each row
    for name in rows.column_names:
        if name != by:
            kind, cells = _read(rows.column(name))
            numbers = mixed(mixed(numbers + numbers_of(f"{kind} {name}")) + cells)
    parts = (groups.rows(group) for group in range(len(groups.names)))
    return [
        hashlib.sha256(np.sort(numbers[part[known[part]]]).tobytes()).hexdigest()[:32]
        for part in parts
    ]


def has_value(column: Any) -> Any:
    """Tell which cells of an Arrow column are neither missing nor NaN."""
    compute = require("pyarrow.compute", "parquet")
    return compute.invert(compute.is_null(column, nan_is_null=True))


def _read(column: Any) -> tuple[str, Numbers]:
    """Return the kind of a column, and a number for each cell."""
    pa = require("pyarrow", "parquet")
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        return _read(column.cast(kind.value_type))
    if types.is_timestamp(kind) or types.is_date(kind):
        stamps = column.cast(pa.timestamp("ms", getattr(kind, "tz", None)), safe=False)
        return "time", _bits(stamps.cast(pa.int64()))
    if types.is_duration(kind):
        return "duration", _bits(column.cast(pa.duration("ms"), safe=False).cast(pa.int64()))
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    if any(holds(kind) for holds in numbers):
        return "number", _bits(column)
    parts = [word_numbers(chunk) for chunk in column.chunks]
    return "category", np.concatenate([numbers_of(), *parts])


def _bits(column: Any) -> Numbers:
    """Return numbers as the bits of float64, with one zero and one NaN."""
    floats = column.cast("float64", safe=False).to_numpy() + 0.0
    return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
