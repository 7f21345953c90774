"""Some of the shards that benchmarks.partition has dealt are trained, from files and from memory.

The run that dealt the rows goes on in another process, as after a kill, and trains the models of
the first shards, or of some tasks of each. Then the rows of some of these shards are read from the
files into one table each, which is fitted in memory; a table of that size is one shard, with the
same tasks. The two must have the same lines in their indexes, and models that are equal to the last
bit.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

STEPS = 20  # of a network: the question is whether models are lost or differ, not how good they are


class StoppedError(Exception):
    """What the benchmark looks at is done."""


def settings() -> dict[str, Any]:
    """Return what is asked of fit_many, from files and from memory."""
    from psilonnet import Design, PSiLONRegressor  # noqa: PLC0415  # the bare process needs no torch

    small: dict[str, Any] = {"designs": [Design()], "width": 64, "depth": 2, "max_steps": STEPS}
    estimator = PSiLONRegressor(**small, cv=2, reg_strength=5e-3, random_state=0)
    return {"by": "group", "target": "y", "estimator": estimator, "progress": False}


def deal(out: str, *paths: str) -> None:
    """Deal the rows of files, and stop before the first model."""
    _fit_some(list(paths), Path(out), 0, 0)


def train(out: str, shards: str, tasks: str, *paths: str) -> None:
    """Go on where the rows are dealt, and train so many tasks of so many shards."""
    _fit_some(list(paths), Path(out), int(shards), int(tasks))


def _fit_some(table: Any, out: Path, shards: int, tasks: int) -> None:
    fit: Any = import_module("psilonnet.scale.many.fit")
    run = fit._run

    def run_some(task: Any, cells: list[Any], *more: Any) -> None:
        chosen = [str(path) for path in chosen_shards(out, shards)]
        parts = [[cell for cell in cells if cell.path == path] for path in chosen]
        strides = [max(1, -(-len(part) // tasks)) for part in parts]  # of similar size in a row
        pairs = zip(parts, strides, strict=True)
        run(task, [cell for part, stride in pairs for cell in part[::stride]], *more)
        raise StoppedError

    fit._run = run_some  # where the models are fitted
    warnings.simplefilter("ignore")
    try:
        with suppress(StoppedError):
            fit.fit_many(table, **settings(), out=out)
    finally:
        fit._run = run


def chosen_shards(out: Path, count: int) -> list[Path]:
    """Return the shards that are trained: those with a sample of a group come first."""
    paths = sorted((out.resolve() / "work" / "shards").glob("*.parquet"))
    return sorted(paths, key=lambda path: not is_sampled(path))[:count]


def is_sampled(shard: Path) -> bool:
    """Tell whether a shard has a group of which a sample is taken."""
    return any(cell.found for cell, _ in _tasks(shard))


def _tasks(shard: Path) -> list[tuple[Any, list[str]]]:
    reader: Any = import_module("psilonnet.scale.many.shards")
    return list(reader.read_tasks(shard))


def lines_of(out: Path, shard: Path) -> Any:
    """Return the lines of the index about the groups of a shard."""
    tasks = [cell.task for cell, _ in _tasks(shard)]
    paths = [out / "index" / task[:2] / f"{task}.parquet" for task in tasks]
    return pa.concat_tables([pq.read_table(path) for path in paths if path.exists()])


def compare(
    out: str, folder: str, shards: str, compared: str, tasks: str, *paths: str
) -> dict[str, int]:
    """Fit the groups of shards from tables in memory; return how many models are the same."""
    # A group of which a sample is taken makes a table of its shard alone too large for one shard.
    chosen = [shard for shard in chosen_shards(Path(out), int(shards)) if not is_sampled(shard)]
    chosen = chosen[: int(compared)]
    keys = [pq.read_table(shard, columns=["group"]).column("group").unique() for shard in chosen]
    rows = [_rows_with(pq.read_table(path), pa.concat_arrays(keys)) for path in paths]
    table, found = pa.concat_tables(rows), {"shards": len(chosen), "groups": 0, "same": 0}
    for shard, own in zip(chosen, keys, strict=True):
        memory = Path(folder, shard.stem)
        _fit_some(_rows_with(table, own), memory, 1, int(tasks))
        ours = dict(_described(Path(out), lines_of(Path(out), shard)))
        theirs = dict(_described(memory, lines_of(memory, *chosen_shards(memory, 1))))
        found["groups"] += len(ours | theirs)
        found["same"] += sum(theirs.get(key) == line for key, line in ours.items())
    return found


def _rows_with(table: Any, keys: Any) -> Any:
    return table.filter(pc.is_in(table.column("group"), keys))


def _described(out: Path, lines: Any) -> Iterator[tuple[int, Any]]:
    """Yield the key of each group, with its line of the index and all bits of its model."""
    from safetensors import safe_open  # noqa: PLC0415  # as above

    for line in lines.drop_columns(["seconds"]).to_pylist():
        words = {name: str(value) for name, value in line.items()}  # NaN is NaN
        if line["path"] is None:
            yield line["group"], (words,)
            continue
        with safe_open(out / line["path"], "numpy") as file:
            tensors = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
            yield line["group"], (words, file.metadata(), tensors)
