"""Some of the shards that benchmarks.partition has dealt are trained, from files and from memory.

The run that dealt the rows goes on in another process, as after a kill, and trains the models of
the first shards. Then the rows of some of these shards are read from the files into one table each,
which is fitted in memory; a table of that size is one shard, with the same tasks. The two must have
the same lines in their indexes, and models that are equal to the last bit.
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
    _fit_shards(out, 0, paths)


def train(out: str, shards: str, *paths: str) -> None:
    """Go on where the rows are dealt, and train so many shards."""
    _fit_shards(out, int(shards), paths)


def _fit_shards(out: str, shards: int, paths: tuple[str, ...]) -> None:
    fit: Any = import_module("psilonnet.scale.many.fit")
    run = fit._run

    def first(task: Any, cells: list[Any], *more: Any) -> None:
        chosen = set(map(str, chosen_shards(Path(out), shards)))
        run(task, [cell for cell in cells if cell.path in chosen], *more)
        raise StoppedError

    fit._run = first  # where the models are fitted
    warnings.simplefilter("ignore")
    with suppress(StoppedError):
        fit.fit_many(list(paths), **settings(), out=out)


def chosen_shards(out: Path, count: int) -> list[Path]:
    """Return the shards that are trained: those with a sample of a group come first."""
    paths = sorted((out.resolve() / "work" / "shards").glob("*.parquet"))
    return sorted(paths, key=lambda path: not is_sampled(path))[:count]


def is_sampled(shard: Path) -> bool:
    """Tell whether a shard has a group of which a sample is taken."""
    shards: Any = import_module("psilonnet.scale.many.shards")
    return any(cell.found for cell, _ in shards.read_tasks(shard))


def lines_of(out: Path, shard: Path) -> Any:
    """Return the lines of the index about the groups of a shard."""
    shards: Any = import_module("psilonnet.scale.many.shards")
    tasks = [cell.task for cell, _ in shards.read_tasks(shard)]
    return pa.concat_tables([pq.read_table(out / "index" / t[:2] / f"{t}.parquet") for t in tasks])


def compare(out: str, shard: str, folder: str, *paths: str) -> dict[str, int]:
    """Fit the groups of a shard from a table in memory; return how many models are the same."""
    from psilonnet.scale import fit_many  # noqa: PLC0415  # the bare process needs no torch

    lines = lines_of(Path(out), Path(shard))
    keys = lines.column("group").combine_chunks()
    parts = (pq.read_table(path) for path in paths)
    table = pa.concat_tables([part.filter(pc.is_in(part.column("group"), keys)) for part in parts])
    warnings.simplefilter("ignore")
    index = fit_many(table, **settings(), out=folder)
    ours, theirs = (dict(described(root, own)) for root, own in (
        (Path(out), lines), (Path(folder), pq.read_table(index)),
    ))  # fmt: skip
    same = sum(theirs.get(key) == line for key, line in ours.items())
    return {"compared": len(ours | theirs), "same": same}


def described(out: Path, lines: Any) -> Iterator[tuple[int, Any]]:
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
