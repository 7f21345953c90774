"""The rows of a table in memory, shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from psilonnet._extras import require
from psilonnet.scale.failures import first_line
from psilonnet.scale.many.keys import key_column, key_numbers
from psilonnet.scale.many.sample import Sample, Tally
from psilonnet.scale.many.shards import shard_count, shard_numbers

if TYPE_CHECKING:
    from psilonnet.scale.many.folder import ModelFolder


class TableRows:
    """A table in memory.

    Parameters
    ----------
    table : pandas, polars or Arrow table
    by, target : str
    most : int or None
        Rows of a group at most; None: as many as there are.
    seed : int
        Of the samples of groups with more.

    Attributes
    ----------
    schema : Arrow schema
        With the type of the keys that :func:`key_column` gives them.
    missing : int
        How many rows have no key.
    large : dict
        How many rows each group has of which a sample is taken, by the number of its key.
    shards : int
    rows_in_all : int
        With a key.
    """

    def __init__(self, table: Any, by: str, target: str, most: int | None, seed: int) -> None:
        rows = as_arrow(table, [by, target])
        keys = key_column(rows, by)
        rows = rows.set_column(rows.column_names.index(by), by, keys)
        self.schema, self.missing = rows.schema, keys.null_count
        self.rows_in_all = len(rows) - self.missing
        self.most = most
        self.shards = shard_count(len(rows), len(rows.column_names))
        self.large: dict[int, int] = {}
        if self.missing:
            rows = rows.filter(keys.is_valid())
        if most is not None or self.shards > 1:
            numbers = key_numbers(rows.column(by).combine_chunks())
            if most is not None:
                tally = Tally()
                tally.add(numbers)
                self.large = tally.above(most)
                stays = Sample(self.large, most, seed).stays(numbers)
                rows, numbers = rows.filter(stays), numbers[stays]
            self._shards = shard_numbers(numbers, self.shards)
        self._rows = rows

    def head(self, names: list[str], count: int) -> Any:
        """Return the first rows of some columns."""
        return self._rows.select(names).slice(0, count)

    def begin(self, folder: ModelFolder, *, progress: bool) -> None:
        """Let go what another run has left: the rows are dealt anew, which is quick."""
        folder.clear_work()

    def shard(self, number: int) -> Any:
        """Return the rows of a shard, in the order of the table."""
        if self.shards == 1:
            return self._rows
        return self._rows.take(np.flatnonzero(self._shards == number))

    def end(self) -> None:
        """Nothing is left to let go when all shards are written."""


def as_arrow(table: Any, needed: list[str]) -> Any:
    """Return a pandas, polars or Arrow table as Arrow, with the columns that are needed."""
    if hasattr(type(table), "collect") or not nw.dependencies.is_into_dataframe(table):
        raise TypeError(
            "The table must be a pandas, polars or Arrow table in memory, or Parquet files. "
            f"Got {type(table).__name__} instead."
        )
    require("pyarrow", "parquet")
    given = table.column_names if hasattr(type(table), "column_names") else table.columns
    names = [str(name) for name in given]  # Arrow has words only
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Column names must be unique. These occur more than once: {twice}. Rename them."
        )
    frame = nw.from_native(table, eager_only=True)
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
