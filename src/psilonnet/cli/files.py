"""The files that commands read and write."""

from __future__ import annotations

import gzip
import sys
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".txt", "")
GZIP = b"\x1f\x8b"  # how a compressed file begins


def read_table(path: Path, words: Sequence[str] = ()) -> pl.DataFrame:
    """Read a CSV or Parquet file; some columns of a CSV file may be asked for as words."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    try:
        if path.suffix.lower() in PARQUET:
            return pl.read_parquet(path)
        table = _read_csv(path, words)
    except (pl.exceptions.PolarsError, OSError) as error:
        first = str(error).split("\n", maxsplit=1)[0]
        raise ValueError(
            f"{str(path)!r} cannot be read as a table ({first}). A CSV file must be in UTF-8, its "
            "cells separated by commas, semicolons or tabs, with a row of names."
        ) from None
    wide = [name for name, dtype in table.schema.items() if str(dtype) == "Int128"]
    return table.with_columns(pl.col(wide).cast(pl.Float64))


def _read_csv(path: Path, words: Sequence[str]) -> pl.DataFrame:
    separator = _separator(path)
    table = pl.read_csv(
        path,
        separator=separator,
        try_parse_dates=True,
        infer_schema_length=None,
        null_values=MISSING,
        schema_overrides=dict.fromkeys(words, pl.String),
    )
    return table if separator == "," else _with_decimal_commas(table, words)


def _with_decimal_commas(table: pl.DataFrame, words: Sequence[str]) -> pl.DataFrame:
    """Return a table in which cells such as ``1,5`` are numbers, where all of a column are."""
    numbers = []
    for column in table.select(pl.col(pl.String).exclude(list(words))):
        if column.str.contains(",", literal=True).any():
            read = column.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
            if read.null_count() == column.null_count():
                numbers.append(read)
    return table.with_columns(numbers)


def _separator(path: Path) -> str:
    """Return what separates the names in the first line of a file."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    with gzip.open(path) if packed else path.open("rb") as file:
        first = file.readline(2**16)
    return max(",;\t", key=lambda sign: first.count(sign.encode()))


def read_for(estimator: Any, path: Path, more: Sequence[str] = ()) -> pl.DataFrame:
    """Read the columns of a model, in its order, and some more.

    A CSV file has no types. Where a column of words happens to hold numbers only, it is read as
    words all the same.
    """
    table = read_table(path)
    kinds = dict(zip(estimator.encoder_.names, estimator.encoder_.kinds, strict=True))
    for name in (*kinds, *more):
        check_column(name, table, path)
    words = [n for n, kind in kinds.items() if kind == "category" and table[n].dtype.is_numeric()]
    if words:
        table = read_table(path, words)
    return table.select(list(dict.fromkeys([*kinds, *more])))


def with_target(table: pl.DataFrame, target: str, path: Path) -> pl.DataFrame:
    """Return the rows that have a target, and say how many have none."""
    given = table[target]
    known = given.fill_nan(None) if given.dtype.is_float() else given
    rows = table.filter(known.is_not_null())
    if len(rows) == 0:
        raise ValueError(f"{str(path)!r} has no row with a value in {target!r}.")
    if len(rows) < len(table):
        print(f"{len(table) - len(rows)} rows without {target!r} are left out.", file=sys.stderr)
    return rows


def check_column(name: str, table: pl.DataFrame, path: Path) -> None:
    """Refuse a column that the table does not have."""
    if name not in table.columns:
        raise ValueError(f"{str(path)!r} has no column {name!r}. It has {table.columns}.")


def check_folder(out: Path) -> None:
    """Refuse a file in a folder that is not there."""
    if not out.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(out.parent)!r} to write to: make it.")


def write_table(table: pl.DataFrame, path: Path | None) -> None:
    """Write a CSV or Parquet file, or CSV to the terminal."""
    if path is None:
        sys.stdout.write(table.write_csv())
        return
    check_folder(path)
    if path.suffix.lower() in PARQUET:
        table.write_parquet(path)
    elif path.suffix.lower() in TEXT:
        table.write_csv(path)
    else:
        raise ValueError(
            f"An output must end in .csv or .parquet. Got {str(path)!r}: choose another name."
        )
