"""Columns of text in Parquet files, where the model takes numbers or times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from psilonnet._extras import require
from psilonnet.tables import TEXT_KINDS, Column, TextCells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psilonnet.tables import TextKind, TextReading, TextStyle


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds words."""
    types = require("pyarrow", "parquet").types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return "string" in str(kind)  # in short, large or viewed pieces


def text_columns(schema: Any, columns: Mapping[str, str | None]) -> dict[str, TextKind]:
    """Return the kinds of the columns that are text in a file, but numbers or times in fit."""
    there = (name for name, kind in columns.items() if kind in TEXT_KINDS and name in schema.names)
    texts = (name for name in there if is_text(schema.field(name).type))
    return {name: cast("TextKind", columns[name]) for name in texts}


def with_text_read(
    table: Any, columns: Mapping[str, str | None], style: TextStyle
) -> tuple[Any, dict[str, TextReading]]:
    """Return an Arrow table whose text is numbers and times where the model takes such.

    Each cell is read by itself, so that it is the same in every part of a table.
    """
    pa = require("pyarrow", "parquet")
    readings = {}
    for name, kind in text_columns(table.schema, columns).items():
        words = table.column(name).cast(pa.string()).to_numpy()
        readings[name] = TextCells(Column(name, "category", words)).read(kind, style, alone=True)
        cells = pa.array(readings[name].values)
        table = table.set_column(table.column_names.index(name), name, cells)
    return table, readings
