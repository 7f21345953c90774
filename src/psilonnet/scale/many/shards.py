"""Shards: the rows of some groups, dealt into tasks, in one file with a row group per task."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psilonnet._extras import require
from psilonnet._files import written
from psilonnet.scale.many.keys import key_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from psilonnet.scale.many.groups import Groups, Integers
    from psilonnet.scale.many.hashed import Numbers

# A task has at most so many groups and, unless it is one group, so many rows: enough to fill the
# populations that groups share, and short enough that a lost worker costs little.
GROUPS_PER_TASK = 32
ROWS_PER_TASK = 20_000
# A shard has about so many cells, 64 MB of numbers, since its rows are in memory at once. Models
# depend in their last bits on the groups that share a task, and so on the shards.
SHARD_CELLS = 2**23
MOST_SHARDS = 4096
TASKS = b"psilonnet.fit_many"


class TaskCell(NamedTuple):
    """Where a task is, all that is sent to a worker.

    Attributes
    ----------
    task : str
        A hash of its groups.
    path : str
    part : int
        The row group of the file.
    found : dict
        How many rows each of its groups had that was cut down to a sample, by name.
    """

    task: str
    path: str
    part: int
    found: dict[str, int]

    def __str__(self) -> str:
        return f"task {self.task}"


def shard_count(rows: int, columns: int) -> int:
    """Return in how many shards a table is dealt: a power of two.

    >>> shard_count(100_000, 12), shard_count(50_000_000, 12)
    (1, 128)
    """
    wanted = max(1, -(-rows * columns // SHARD_CELLS))
    return min(MOST_SHARDS, 1 << (wanted - 1).bit_length())


def shard_numbers(numbers: Numbers, shards: int) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Return the shard of each row, given the numbers of their keys."""
    return np.asarray(numbers % np.uint64(shards), dtype=np.uint16)


def write_shard(
    path: Path,
    rows: Any,
    groups: Groups,
    finished: Mapping[str, str],
    large: Mapping[int, int],
) -> None:
    """Write the rows of the groups that are not finished, task by task.

    Parameters
    ----------
    path : Path
    rows : Arrow table
    groups : Groups
    finished : mapping
        With the names of the groups that are not written.
    large : mapping
        How many rows the groups had that were cut down, by the numbers of their keys.
    """
    numbers = key_numbers(groups.keys).tolist()
    tasks = []
    for planned in _plan_tasks(groups.sizes, groups.names):
        left = [group for group in planned if groups.names[group] not in finished]
        if left:
            tasks.append(left)
    described = [
        {
            "groups": [groups.names[group] for group in left],
            "found": {
                groups.names[group]: large[numbers[group]]
                for group in left
                if numbers[group] in large
            },
        }
        for left in tasks
    ]
    parts = (rows.take(np.concatenate([groups.rows(group) for group in left])) for left in tasks)
    _write_parts(path, rows.schema, described, parts)


def write_task(path: Path, rows: Any, name: str, found: Mapping[str, int]) -> TaskCell:
    """Write a shard of one task with one group, and return the task."""
    own = {name: found[name]} if name in found else {}
    _write_parts(path, rows.schema, [{"groups": [name], "found": own}], iter([rows]))
    return TaskCell(_task_name([name]), str(path), 0, own)


def _write_parts(
    path: Path, schema: Any, described: list[dict[str, Any]], parts: Iterator[Any]
) -> None:
    pa, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    words = [field.name for field in schema if not pa.types.is_floating(field.type)]
    schema = schema.with_metadata({TASKS: json.dumps(described)})
    with written(path) as aside, parquet.ParquetWriter(aside, schema, use_dictionary=words) as file:
        for part in parts:
            file.write_table(part.replace_schema_metadata(schema.metadata), len(part))


def read_tasks(path: Path) -> list[tuple[TaskCell, list[str]]]:
    """Return the tasks of a shard and the names of their groups."""
    schema = require("pyarrow.parquet", "parquet").read_schema(path)
    return [
        (TaskCell(_task_name(one["groups"]), str(path), part, one["found"]), one["groups"])
        for part, one in enumerate(json.loads(schema.metadata[TASKS]))
    ]


def read_part(cell: TaskCell) -> Any:
    """Return the rows of a task."""
    parquet = require("pyarrow.parquet", "parquet")
    with parquet.ParquetFile(cell.path) as file:
        return file.read_row_group(cell.part, use_threads=False).replace_schema_metadata(None)


def _task_name(names: list[str]) -> str:
    """Return the name of a task with some groups."""
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]


def _plan_tasks(sizes: Integers, names: list[str]) -> list[list[int]]:
    """Deal the groups into tasks: groups of similar size together, the largest first.

    The plan depends on the groups alone, not on which of them are finished.

    >>> _plan_tasks(np.array([5, 9000, 12000, 7]), ["d", "c", "b", "a"])
    [[2], [1, 3, 0]]
    """
    order = sorted(range(len(names)), key=lambda k: (-sizes[k], names[k]))
    tasks = max(1, -(-len(order) // GROUPS_PER_TASK))
    most = -(-len(order) // tasks)  # so that the last task is as full as the others
    planned: list[list[int]] = []
    total = 0
    for group in order:
        full = not planned or len(planned[-1]) == most
        if full or total + sizes[group] > ROWS_PER_TASK:
            planned.append([])
            total = 0
        planned[-1].append(group)
        total += int(sizes[group])
    return planned
