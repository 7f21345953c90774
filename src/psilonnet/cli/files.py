"""The files that commands read and write."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from collections import Counter
from typing import IO, TYPE_CHECKING, cast

import polars as pl

from psilonnet._files import check_place
from psilonnet._names import did_you_mean
from psilonnet.cli.lines import say
from psilonnet.tables import word_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from psilonnet.tables import TextStyle

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".txt", "")
GZIP = b"\x1f\x8b"  # how a compressed file begins


def has_types(path: Path) -> bool:
    """Whether a file says what its columns hold."""
    return path.suffix.lower() in PARQUET


def read_table(
    path: Path,
    style: TextStyle,
    words: Sequence[str] = (),
    levels: Mapping[str, Sequence[str]] | None = None,
    *,
    again: bool = False,
) -> pl.DataFrame:
    """Read a CSV or Parquet file; some columns may be asked for as words, or have known levels.

    Of one that is read again nothing is said.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file to read.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    try:
        table = pl.read_parquet(path) if has_types(path) else _read_csv(path, style, words)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).split("\n", maxsplit=1)[0]
        raise ValueError(
            f"{str(path)!r} cannot be read as a table ({first}). A CSV file must be in UTF-8, its "
            "cells separated by commas, semicolons or tabs, with a row of names."
        ) from None
    if not has_types(path):
        known = [_with_levels(path, *column) for column in (levels or {}).items()]
        table = _with_values(table, known, quiet=again)
    table = table.with_columns(_as_words(table[name]) for name in words if name in table.columns)
    wide = [name for name, dtype in table.schema.items() if str(dtype) == "Int128"]
    return table.with_columns(pl.col(wide).cast(pl.Float64))


def _with_values(table: pl.DataFrame, known: list[pl.Series], *, quiet: bool) -> pl.DataFrame:
    """Return the rows that have a value in any column; to the reader, blank lines are rows.

    Columns that are known take the place of those of the table, which decide what is blank.
    """
    blank = table.select(pl.all_horizontal(pl.all().is_null())).to_series()
    table = table.with_columns(known)
    rows = table.filter(~blank) if table.width > 1 else table
    if len(rows) < len(table) and not quiet:
        say(f"{len(table) - len(rows)} blank lines, or rows without any value, are left out.")
    return rows


def _with_levels(path: Path, name: str, levels: Sequence[str]) -> pl.Series:
    """Return a column of a CSV file in which a word that is a level is no missing cell."""
    missing = [word for word in MISSING if word not in levels]
    return _as_written(path, [name], missing)[name]


def _as_words(column: pl.Series) -> pl.Series:
    """Return a column as the words that its cells would be among words."""
    if column.dtype == pl.String:
        return column
    cells = column.fill_nan(None) if column.dtype.is_float() else column
    words = [None if cell is None else word_of(cell) for cell in cells]
    return pl.Series(column.name, words, pl.String)


def _read_csv(path: Path, style: TextStyle, words: Sequence[str]) -> pl.DataFrame:
    """Read a file without types: digits are numbers, and all else but numbers is text."""
    separator = _separator(path)
    _check_names(path, separator)
    try:
        table = pl.read_csv(
            path,
            separator=separator,
            infer_schema_length=None,
            null_values=MISSING,
            schema_overrides=dict.fromkeys(words, pl.String),
        )
    except pl.exceptions.ComputeError:
        _check_rows(path, separator)
        raise
    if style.decimal == "." or (separator == "," and style.decimal is None):
        return table
    # Here a point may separate thousands.
    numbers = _as_written(path, [n for n, dtype in table.schema.items() if dtype.is_float()])
    doubtful = [c for c in numbers if _may_be_thousands(c, asked=style.decimal == ",")]
    return table.with_columns(doubtful)


def _as_written(path: Path, names: list[str], missing: Sequence[str] = MISSING) -> pl.DataFrame:
    """Return columns of a CSV file as text."""
    if not names:
        return pl.DataFrame()
    separator = _separator(path)
    return pl.read_csv(
        path, columns=names, separator=separator, infer_schema=False, null_values=list(missing)
    )


def _may_be_thousands(numbers: pl.Series, *, asked: bool) -> bool:
    """Whether points can separate thousands: all that there are, or any if it is asked for."""
    pointed = numbers.filter(numbers.str.contains(".", literal=True))
    grouped = pointed.str.contains(r"^\s*[-+]?[1-9]\d{0,2}\.\d{3}\s*$")
    return bool(grouped.any() if asked else len(grouped) and grouped.all())


def code_columns(path: Path, table: pl.DataFrame) -> list[str]:
    """Return the columns of digits in a CSV file that have leading zeros, as codes have."""
    if has_types(path):
        return []
    digits = _as_written(path, [n for n, dtype in table.schema.items() if dtype.is_integer()])
    return [column.name for column in digits if column.str.contains(r"^\s*0\d").any()]


def _open(path: Path) -> IO[bytes]:
    """Open a file to be read, unpacked if it is compressed."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _separator(path: Path) -> str:
    """Return what separates the names in the first line of a file that is not blank."""
    with _open(path) as file:
        lines = iter(lambda: file.readline(2**16), b"")
        first = next((line for line in lines if line.strip(b"\r\n")), b"")
    first = re.sub(rb'"[^"]*"', b"", first)
    if b"\r" in first.rstrip(b"\r\n"):
        raise OSError("its lines end with a carriage return alone, as of old; write it again")
    return max(",;\t", key=lambda sign: first.count(sign.encode()))


def _check_names(path: Path, separator: str) -> None:
    """Refuse names that occur twice, or are not in UTF-8: they would be read as other names."""
    with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        try:
            names = next(filter(None, csv.reader(text, delimiter=separator)), [])
        except UnicodeDecodeError as error:
            raise OSError("invalid UTF-8") from error
        except csv.Error as error:
            raise OSError(str(error)) from error
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        raise ValueError(
            f"Column names must be unique. These occur more than once in {str(path)!r}: {twice}. "
            "Rename them in the file."
        )


def _check_rows(path: Path, separator: str) -> None:
    """Name the first row that has more cells than there are names."""
    with _open(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=separator)
        width = len(next(filter(None, rows), []))
        for row in rows:
            if len(row) > width:
                raise OSError(
                    f"line {rows.line_num} has {len(row)} cells, and there are {width} names"
                )


def with_target(table: pl.DataFrame, target: str, path: Path) -> pl.DataFrame:
    """Return the rows that have a target, and say how many have none."""
    given = table[target]
    known = given.fill_nan(None) if given.dtype.is_float() else given
    rows = table.filter(known.is_not_null())
    if len(rows) == 0:
        raise ValueError(f"{str(path)!r} has no row with a value in {target!r}.")
    if len(rows) < len(table):
        say(f"{len(table) - len(rows)} rows without {target!r} are left out.")
    return rows


def check_column(name: str, table: pl.DataFrame, path: Path) -> None:
    """Refuse a column that the table does not have."""
    if name not in table.columns:
        hint = did_you_mean([name], table.columns)
        raise ValueError(f"{str(path)!r} has no column {name!r}. It has {table.columns}.{hint}")


def check_out(out: Path, *read: Path | None) -> None:
    """Refuse to write where a command reads, or where there is no folder."""
    if not out.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(out.parent)!r} to write to: make it.")
    if any(path is not None and out.resolve() == path.resolve() for path in read):
        raise ValueError(
            f"The output must not take the place of a file that is read. Got {str(out)!r} as both: "
            "choose another name for --out."
        )


def check_model_out(path: Path, *read: Path) -> None:
    """Refuse a model that could not be written, or that has the name of a table."""
    check_out(path, *read)
    check_place(path)
    if path.suffix.lower() in (".csv", *PARQUET):
        raise ValueError(
            f"A model must not have the name of a table. Got {str(path)!r}: choose a name such as "
            f"{str(path.with_suffix('.psilon'))!r}."
        )


def check_table_out(path: Path | None, *read: Path) -> None:
    """Refuse a table that could not be written, or that would take the place of what is read."""
    if path is None:
        return
    check_out(path, *read)
    check_place(path)
    if path.suffix.lower() not in (*PARQUET, *TEXT):
        raise ValueError(
            f"An output must end in .csv or .parquet. Got {str(path)!r}: choose another name."
        )


def write_table(table: pl.DataFrame, path: Path | None) -> None:
    """Write a CSV or Parquet file, or CSV to the terminal."""
    if path is None:
        sys.stdout.write(table.write_csv())
        return
    if path.suffix.lower() in PARQUET:
        table.write_parquet(path)
    else:
        table.write_csv(path)
    print(f"Written to {path}.")
