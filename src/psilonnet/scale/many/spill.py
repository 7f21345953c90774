"""Rows on their way from files to shards: one file per stretch of the input, sorted by shard."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet._files import written
from psilonnet.scale.many.shards import SHARD_CELLS, shard_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from psilonnet.scale.many.hashed import Numbers
    from psilonnet.scale.many.sample import Sample

RUN_BYTES = 2**28  # of a run at most: columns of text may be wide
Batch = tuple[Any, "Numbers"]  # rows, and the numbers of their keys


class Spill:
    """A folder with the rows of stretches of the input, each stretch complete or absent.

    The file of a stretch holds runs of rows. A run is what is in memory at once, and has one
    record batch per shard, in turn: so the rows of a shard are read without the others, in the
    order of the input, and one file is open at a time.

    Parameters
    ----------
    folder : Path
    schema : Arrow schema
    shards : int
    """

    def __init__(self, folder: Path, schema: Any, shards: int) -> None:
        self.folder, self.schema, self.shards = folder, schema, shards
        self._run = max(1, SHARD_CELLS // max(1, len(schema)))  # rows

    def path(self, stretch: int) -> Path:
        """Return the file of a stretch."""
        return self.folder / f"{stretch:05d}.arrow"

    def seen(self, stretch: int) -> dict[int, int]:
        """Return how many rows of each large group there are up to the end of a stretch."""
        if stretch < 0:
            return {}
        noted = json.loads(self.path(stretch).with_suffix(".json").read_text())
        return {int(number): count for number, count in noted.items()}

    def write(self, stretch: int, batches: Iterable[Batch], sample: Sample) -> None:
        """Write the rows of a stretch that stay."""
        ipc = require("pyarrow", "parquet").ipc
        self.folder.mkdir(parents=True, exist_ok=True)
        with written(self.path(stretch)) as aside:
            with ipc.new_file(aside, self.schema) as file:
                for run in _runs(_staying(batches, sample), self._run):
                    self._write_run(file, run)
            # Before the rows: where these are, so is what was seen.
            with written(self.path(stretch).with_suffix(".json")) as notes:
                notes.write_text(json.dumps(sample.seen))

    def _write_run(self, file: Any, run: list[Batch]) -> None:
        pa = require("pyarrow", "parquet")
        shards = shard_numbers(np.concatenate([numbers for _, numbers in run]), self.shards)
        rows = pa.concat_tables([rows for rows, _ in run]).combine_chunks()
        rows = rows.take(np.argsort(shards, kind="stable"))
        ends = np.cumsum(np.bincount(shards, minlength=self.shards))
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            part = rows.slice(start, end - start).combine_chunks().to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=self.schema)
            file.write_batch(part[0] if part else empty)

    def rows(self, shard: int, stretches: int) -> Any:
        """Return the rows of a shard in the order of the input."""
        pa = require("pyarrow", "parquet")
        batches = []
        for stretch in range(stretches):
            with pa.OSFile(str(self.path(stretch))) as source:
                file = pa.ipc.open_file(source)
                places = range(shard, file.num_record_batches, self.shards)
                batches += [file.get_batch(place) for place in places]
        return pa.Table.from_batches(batches, schema=self.schema).combine_chunks()

    def clear(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _staying(batches: Iterable[Batch], sample: Sample) -> Iterator[Batch]:
    for rows, numbers in batches:
        stays = sample.stays(numbers)
        yield (rows, numbers) if stays.all() else (rows.filter(stays), numbers[stays])


def _runs(batches: Iterable[Batch], most: int) -> Iterator[list[Batch]]:
    """Gather batches into runs of about so many rows."""
    run: list[Batch] = []
    for batch in batches:
        run.append(batch)
        full = sum(len(rows) for rows, _ in run) >= most
        if full or sum(rows.nbytes for rows, _ in run) >= RUN_BYTES:
            yield run
            run = []
    if run:
        yield run
