"""Tables larger than memory: how ``fit_many`` deals the rows of Parquet files to shards.

Made-up rows of ten columns (float32) in groups of 167 are written to Parquet files, the groups
mixed. A process of its own deals a fifth of the files, and one all of them, up to the moment at
which the first model would be fitted, and tells its seconds and its peak memory (Linux only).
Beside them the same files are read and written bare: batch by batch, nothing sorted. One group may
have a third of all rows (--heavy).

    python -m benchmarks.partition [--quick | --tiny] [--rows 50000000] [--heavy] [--folder DIR]

It takes room for the rows four times in the folder (a temporary one without it).
"""

import argparse
import os
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.alone import print_cost, run_alone
from benchmarks.figures import print_figures

FULL, QUICK = 50_000_000, 100_000
COLUMNS = [f"x{k}" for k in range(10)]
FILE_ROWS, GROUP_ROWS, BATCH = 1_000_000, 250_000, 131_072
ROWS_PER_GROUP = 167
FILES = 10  # at least


def write_files(folder: Path, rows: int, *, heavy: bool) -> list[Path]:
    """Write random rows; if heavy, a third of them belong to one group."""
    rng = np.random.default_rng(0)
    count = max(FILES, rows // FILE_ROWS)
    paths = [folder / f"{k:04d}.parquet" for k in range(count)]
    for path in paths:
        own = rows // count
        keys = rng.integers(0, rows // ROWS_PER_GROUP, own)
        if heavy:
            keys[rng.random(own) < 1 / 3] = 0
        columns = {name: rng.standard_normal(own, dtype=np.float32) for name in COLUMNS}
        target = rng.standard_normal(own, dtype=np.float32)
        table = pa.table({"group": keys, **columns, "y": target})
        pq.write_table(table, path, row_group_size=GROUP_ROWS)
    return paths


def copy_bare(out: str, *paths: str) -> None:
    """Read and write files, batch by batch."""
    for path in paths:
        writer = None
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH, use_threads=False):
                name = Path(out, Path(path).name)
                writer = writer or pq.ParquetWriter(name, batch.schema, use_dictionary=["group"])
                writer.write_batch(batch)
        if writer is not None:
            writer.close()


class DealtError(Exception):
    """All rows are dealt."""


def stop(*_: object) -> None:
    raise DealtError


def deal(out: str, *paths: str) -> None:
    """Deal the rows of files, and stop before the first model."""
    from psilonnet import PSiLONRegressor  # noqa: PLC0415  # the bare process needs no torch

    fit: Any = import_module("psilonnet.scale.many.fit")
    fit._run = stop  # where the models would be fitted
    warnings.simplefilter("ignore")
    given = {"by": "group", "target": "y", "estimator": PSiLONRegressor(random_state=0)}
    with suppress(DealtError):
        fit.fit_many(list(paths), **given, out=out, progress=False)


WAYS = {"bare": copy_bare, "deal": deal}


def child(way: str, out: str, *paths: str) -> None:
    Path(out).mkdir(parents=True)
    print_cost(lambda: WAYS[way](out, *paths))


def alone(way: str, out: Path, paths: list[Path]) -> dict[str, float]:
    """Do something in a process of its own; return its seconds and its peak memory."""
    return run_alone("benchmarks.partition", way, out, *paths)


def partition_figures(
    rows: int, *, heavy: bool = False, where: str | None = None
) -> dict[str, Any]:
    """Deal so many rows, and a fifth of them; return the figures."""
    with TemporaryDirectory(dir=where) as temporary:
        folder = Path(temporary)
        (folder / "in").mkdir()
        paths = write_files(folder / "in", rows, heavy=heavy)
        fifth = alone("deal", folder / "fifth", paths[: len(paths) // 5])
        bare = alone("bare", folder / "bare", paths)
        whole = alone("deal", folder / "whole", paths)
        shards = list((folder / "whole" / "work" / "shards").glob("*.parquet"))
        dealt = sum(pq.read_metadata(path).num_rows for path in shards)
    return {
        "partition_rows": rows,
        "partition_rows_kept": dealt,
        "partition_shards": len(shards),
        "partition_rows_per_s": rows / whole["seconds"],
        "partition_rows_per_s_core": rows / whole["cpu"],
        "read_and_write_rows_per_s": rows / bare["seconds"],
        "partition_over_read_and_write": whole["seconds"] / bare["seconds"],
        "partition_over_read_and_write_cpu": whole["cpu"] / bare["cpu"],
        "partition_peak_mb_fifth": fifth["peak_mb"],
        "partition_peak_mb": whole["peak_mb"],
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} rows")
    parser.add_argument("--tiny", action="store_true", help="the same")
    parser.add_argument("--rows", type=int, default=FULL)
    parser.add_argument("--heavy", action="store_true", help="one group has a third of the rows")
    parser.add_argument("--folder", help="where the rows are written")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    rows = QUICK if given.quick or given.tiny else given.rows
    print_figures(partition_figures(rows, heavy=given.heavy, where=given.folder))


if __name__ == "__main__":
    main()
