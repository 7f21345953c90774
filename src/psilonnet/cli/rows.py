"""The rows that commands work on: text is read as numbers and dates, with a line that says so."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, cast

import polars as pl
import typer

from psilonnet.cli.files import MISSING, check_column, code_columns, has_types, read_table
from psilonnet.cli.lines import say
from psilonnet.cli.options import Task
from psilonnet.tables import TEXT_KINDS, CategoryCode, Column, TextCells, TextError, TextStyle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from psilonnet.tables import TableEncoder, TextKind

# In Parquet, and in CSV, where the first column without a name has none and others get one.
_INDEX = re.compile(r"__index_level_\d+__|(_duplicated_\d+)?")


class Sign(str, Enum):
    """What separates the fraction of a number."""

    point = "."
    comma = ","


Decimal = Annotated[
    Sign | None,
    typer.Option(help="The decimal sign, where text such as 1,435 can be read in two ways."),
]
DayFirst = Annotated[
    bool | None,
    typer.Option(
        "--day-first/--month-first",
        help="The order in dates such as 01/02/2023, which can be read in two ways.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column to read as words, like a code; repeat it."),
]


def text_style(decimal: Sign | None, day_first: bool | None) -> TextStyle:
    """Return the options about text as one."""
    return TextStyle(None if decimal is None else decimal.value, day_first)


def read_training(
    path: Path,
    style: TextStyle,
    *,
    target: str,
    task: Task = Task.auto,
    by: str | None = None,
    drop: Sequence[str] | None = None,
    words: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Read a table to fit: text that looks like numbers or dates is read as such.

    Parameters
    ----------
    path : Path
    style : TextStyle
    target : str
    task : Task
        Classes are read as they are written, and what must be numbers may have leading zeros.
    by : str, optional
        The column of the groups, which is read as it is written.
    drop : sequence of str, optional
        Columns to leave out.
    words : sequence of str, optional
        Columns that are words, whatever they look like.
    """
    drop, words = list(dict.fromkeys(drop or [])), list(dict.fromkeys(words or []))
    keys = [target] if by is None else [target, by]
    if needed := [name for name in keys if name in drop]:
        raise ValueError(
            "A column to drop must not be the target or the column of the groups. Got "
            f"{needed[0]!r} as both: leave it out of --drop."
        )
    table = read_table(path, style, words)
    for name in (*keys, *drop, *words):
        check_column(name, table, path)
    numbers = [target] if task == Task.regression else []
    codes = [n for n in code_columns(path, table) if n not in (*drop, *numbers)]
    if codes:
        table = read_table(path, style, [*words, *codes], again=True)
        listed = ", ".join(map(repr, codes))
        say(f"Read as words, since digits with leading zeros are codes: {listed}.")
    table = _without_indexes(table.drop(drop), [*keys, *words])
    written = keys if task == Task.classification else keys[1:]
    lines = _Lines()
    for name in table.select(pl.col(pl.String).exclude([*words, *codes])).columns:
        cells = _text_cells(table[name])
        kind = cells.kind(untyped=not has_types(path))
        if kind == "time" or (kind == "number" and name not in written):
            try:
                table = table.with_columns(lines.read(cells, kind, style))
            except TextError as error:
                way = "" if name in keys else f", or leave it out with --drop {name}"
                raise TextError(f"{error} Or keep it as words with --words {name}{way}.") from None
    lines.show()
    if not set(table.columns).difference(keys):
        raise ValueError(
            f"A column beside {' and '.join(map(repr, keys))} is needed to predict from. "
            f"{str(path)!r} has none that is not left out."
        )
    # What the user calls words is not asked about again.
    declared = [name for name in words if name in table.columns and name not in keys]
    return table.with_columns(pl.col(declared).cast(pl.Categorical))


def _without_indexes(table: pl.DataFrame, named: Sequence[str]) -> pl.DataFrame:
    """Leave out what pandas writes of the index of its rows, unless the user names it."""
    indexes = [n for n in table.columns if _INDEX.fullmatch(n) and n not in named]
    if indexes:
        listed = ", ".join(map(repr, indexes))
        say(f"Left out as an index of rows: {listed}. To use it, give the column a name.")
    return table.drop(indexes)


def read_for(
    encoder: TableEncoder,
    path: Path,
    style: TextStyle,
    target: str | None = None,
    *,
    classes: Any = None,
) -> pl.DataFrame:
    """Read the columns of a model, in its order, and the target if it is asked for.

    The model knows what is a number, a time or a word, whatever a file without types looks like. A
    target with classes is read as words if these are; without, as numbers.
    """
    table = read_table(path, style)
    if len(table) == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    wanted = list(dict.fromkeys([*encoder.names, *([] if target is None else [target])]))
    for name in wanted:
        check_column(name, table, path)
    codes = zip(encoder.names, encoder.codes, strict=True)
    levels = {name: code.levels for name, code in codes if isinstance(code, CategoryCode)}
    if target is not None and classes is not None and isinstance(classes[0], str):
        levels[target] = tuple(classes)
    words = [name for name, known in levels.items() if _looks_otherwise(table[name], known)]
    kept = {name: known for name, known in levels.items() if set(MISSING).intersection(known)}
    if words or kept:
        table = read_table(path, style, words, kept, again=True)
        table = table.with_columns(_as_levels(table[name], levels[name]) for name in words)
    lines = _Lines()
    for name, kind in zip(encoder.names, encoder.kinds, strict=True):
        if kind in TEXT_KINDS and table[name].dtype == pl.String:
            table = table.with_columns(
                lines.read(_text_cells(table[name]), cast("TextKind", kind), style)
            )
    if target is not None and classes is None:
        table = table.with_columns(_as_numbers(table[target], style, lines))
    lines.show()
    return table.select(wanted)


def read_kept(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """Read columns that are carried over as they are written: an id may have leading zeros."""
    if not names:
        return pl.DataFrame()
    names = list(dict.fromkeys(names))
    table = read_table(path, TextStyle(), [] if has_types(path) else names, again=True)
    for name in names:
        check_column(name, table, path)
    return table.select(names)


def _looks_otherwise(column: pl.Series, levels: Sequence[str]) -> bool:
    """Whether the words of a column were taken for something else."""
    if column.dtype == pl.Boolean:
        return not {"True", "False"}.issuperset(levels)
    return column.dtype.is_numeric()


def _as_levels(column: pl.Series, levels: Sequence[str]) -> pl.Series:
    """Return words in which 2.0 is 2 where that is a level: so are floats in a file with types."""
    whole = column.str.replace(r"\.0+$", "")
    matched: pl.Series = column.zip_with(column.is_in(levels) | ~whole.is_in(levels), whole)
    return matched


def _as_numbers(column: pl.Series, style: TextStyle, lines: _Lines) -> pl.Series:
    """Return a target as numbers, if it looks like any; what is wrong with it is said later."""
    if column.dtype != pl.String:
        return column
    cells = _text_cells(column)
    return lines.read(cells, "number", style) if cells.kind(untyped=True) == "number" else column


def _text_cells(column: pl.Series) -> TextCells:
    """Return the cells of a column of words."""
    return TextCells(Column(column.name, "category", column.to_numpy().astype(object)))


class _Lines:
    """What is said about columns of text."""

    def __init__(self) -> None:
        self.read_as: dict[str, list[str]] = {}
        self.lost: list[str] = []

    def read(self, cells: TextCells, kind: TextKind, style: TextStyle) -> pl.Series:
        """Return a column as numbers or times, and note what was done if it is not plain."""
        reading = cells.read(kind, style)
        noun = TEXT_KINDS[kind]
        if cells.is_marked(kind):
            self.read_as.setdefault(noun, []).append(
                f"{cells.name!r} (such as {reading.example!r})"
            )
        if reading.unread:
            self.lost.append(
                f"{reading.unread} cells of {cells.name!r} (such as {reading.unread_example!r}) "
                f"are no {noun} and count as missing."
            )
        column = pl.Series(cells.name, reading.values, nan_to_null=True)
        return column.cast(pl.Int64) if reading.is_whole else column

    def show(self) -> None:
        """Say it on the error stream, apart from results."""
        for noun, columns in self.read_as.items():
            say(f"Read as {noun}: {', '.join(columns)}.")
        for line in self.lost:
            say(line)
