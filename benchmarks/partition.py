"""Tables larger than memory: how ``fit_many`` deals the rows of Parquet files to shards.

Made-up rows of ten columns (float32) in groups of 167 are written to Parquet files, the groups
mixed. A process of its own deals a fifth of the files, and one all of them, up to the moment at
which the first model would be fitted, and tells its seconds and its peak memory (Linux only).
Beside them the same files are read and written bare: batch by batch, nothing sorted. One group may
have a third of all rows (--heavy).

    python -m benchmarks.partition [--quick | --tiny] [--rows 50000000] [--heavy] [--folder DIR]

Then some shards are trained (--train 7), or some tasks of each (--tasks 2), and the models of some
of these shards are compared with those of the same rows from memory (--compare 2): small networks,
two for each group.

It takes room for the rows four times in the folder (a temporary one without it). The files that
were written stay in a folder that is given, and the next run of that size begins with them.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.alone import print_cost, run_alone
from benchmarks.figures import print_figures
from benchmarks.trained_shards import chosen_shards, compare, deal, lines_of, train

FULL, QUICK, TINY = 50_000_000, 100_000, 10_000
COLUMNS = [f"x{k}" for k in range(10)]
FILE_ROWS, GROUP_ROWS, BATCH = 1_000_000, 250_000, 131_072
ROWS_PER_GROUP = 167
FILES = 10  # at least


def write_files(folder: Path, rows: int, *, heavy: bool) -> list[Path]:
    """Write random rows, unless they are there; if heavy, a third of them belong to one group."""
    folder.mkdir(exist_ok=True)
    count = max(FILES, rows // FILE_ROWS)
    paths = [folder / f"{k:04d}.parquet" for k in range(count)]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        rng, own = np.random.default_rng([0, number]), rows // count
        keys = rng.integers(0, rows // ROWS_PER_GROUP, own)
        if heavy:
            keys[rng.random(own) < 1 / 3] = 0
        columns = {name: rng.standard_normal(own, dtype=np.float32) for name in COLUMNS}
        target = rng.standard_normal(own, dtype=np.float32)
        table = pa.table({"group": keys, **columns, "y": target})
        aside = path.with_suffix(".part")
        pq.write_table(table, aside, row_group_size=GROUP_ROWS, use_dictionary=["group"])
        aside.rename(path)
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


WAYS: dict[str, Callable[..., None]] = {"bare": copy_bare, "deal": deal, "train": train}


def child(way: str, out: str, *words: str) -> None:
    if way == "compare":
        print_figures(compare(out, *words))
        return
    Path(out).mkdir(parents=True, exist_ok=True)
    print_cost(lambda: WAYS[way](out, *words))


def alone(way: str, out: Path, *words: object) -> dict[str, float]:
    """Do something in a process of its own; print its figures and return them."""
    figures = run_alone("benchmarks.partition", way, out, *words)
    print(f"{way} {out.name}: {figures}", flush=True)
    return figures


def partition_figures(out: Path, paths: list[Path], rows: int) -> dict[str, float]:
    """Deal all rows of some files, and a fifth of them; return the figures."""
    fifth = alone("deal", out / "fifth", *paths[: len(paths) // 5])
    bare = alone("bare", out / "bare", *paths)
    whole = alone("deal", out / "whole", *paths)
    shards = list((out / "whole" / "work" / "shards").glob("*.parquet"))
    return {
        "partition_rows": rows,
        "partition_rows_kept": sum(pq.read_metadata(path).num_rows for path in shards),
        "partition_shards": len(shards),
        "partition_rows_per_s": rows / whole["seconds"],
        "partition_rows_per_s_core": rows / whole["cpu"],
        "read_and_write_rows_per_s": rows / bare["seconds"],
        "partition_over_read_and_write": whole["seconds"] / bare["seconds"],
        "partition_over_read_and_write_cpu": whole["cpu"] / bare["cpu"],
        "partition_peak_mb_fifth": fifth["peak_mb"],
        "partition_peak_mb": whole["peak_mb"],
    }


def training_figures(
    out: Path, paths: list[Path], shards: int, compared: int, tasks: int
) -> dict[str, float]:
    """Train some of the shards that are dealt, and compare some of these; return the figures."""
    dealt = out / "whole"
    cost = alone("train", dealt, shards, tasks, *paths)
    same = alone("compare", dealt, out / "memory", shards, compared, tasks, *paths)
    chosen = chosen_shards(dealt, shards)
    lines = pa.concat_tables([lines_of(dealt, shard) for shard in chosen])
    return {
        "trained_shards": len(chosen),
        "trained_groups": len(lines),
        "trained_rows": sum(lines.column("rows").to_pylist()),
        "trained_errors": len(lines) - lines.column("error").null_count,
        "trained_sampled_from": max([n or 0 for n in lines.column("sampled_from").to_pylist()]),
        "trained_groups_per_core_hour": 3600 * len(lines) / cost["cpu"],
        "trained_peak_mb": cost["peak_mb"],
        "compared_shards": same["shards"],
        "compared_groups": same["groups"],
        "compared_equal": same["same"],
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} rows")
    parser.add_argument("--tiny", action="store_true", help=f"{TINY:,} rows")
    parser.add_argument("--rows", type=int, default=FULL)
    parser.add_argument("--heavy", action="store_true", help="one group has a third of the rows")
    parser.add_argument("--train", type=int, default=0, help="so many shards")
    parser.add_argument("--compare", type=int, default=1, help="so many of these")
    parser.add_argument("--tasks", type=int, default=10**6, help="of each; all without it")
    parser.add_argument("--folder", help="where the rows are written")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    rows = TINY if given.tiny else QUICK if given.quick else given.rows
    with TemporaryDirectory(dir=given.folder) as temporary:
        out = Path(temporary)
        name = f"{rows}_heavy" if given.heavy else str(rows)
        paths = write_files(Path(given.folder or out) / name, rows, heavy=given.heavy)
        figures = partition_figures(out, paths, rows)
        if given.train:
            figures |= training_figures(out, paths, given.train, given.compare, given.tasks)
        print_figures(figures)


if __name__ == "__main__":
    main()
