"""One model per group of a table: on a cluster through Ray, or in this process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._warnings import warn_user
from psilonnet.estimators import BasePSiLON, check_parameters, plain_data
from psilonnet.scale.cells import CellsFailedError, run_cells
from psilonnet.scale.many.folder import ModelFolder
from psilonnet.scale.many.groups import Groups, as_arrow, groups_of, key_column
from psilonnet.scale.many.task import GroupTask
from psilonnet.scale.text_columns import is_text
from psilonnet.tables import read_columns, warn_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from psilonnet.scale.cells import Cell
    from psilonnet.scale.many.groups import Integers

# A task has at most so many groups and, unless it is one group, so many rows: enough to fill the
# populations that groups share, and short enough that a lost worker costs little.
GROUPS_PER_TASK = 32
ROWS_PER_TASK = 20_000
FORMAT = 2  # of the index: from 2 on it has digests
RETRIES = 10  # of a task whose worker was lost
SAMPLE = 100_000  # rows that tell what columns of text hold


def fit_many(
    table: Any,
    *,
    by: str,
    target: str,
    estimator: BasePSiLON,
    out: str | os.PathLike[str],
    cluster: str | None = None,
    progress: bool = True,
) -> Path:
    """Fit one model per group of a table, and write each to a file.

    Run the same again after a stop of any kind, and only the groups without a line in the index
    are fitted; there may be new groups, but those in the index must have the same rows, in any
    order. A group that cannot be fitted has its reason in the index and stops nobody.

    Parameters
    ----------
    table : pandas, polars or Arrow table
    by : str
        The column whose values are the groups: words, numbers, booleans, dates or times. Rows
        where it is missing belong to no group; they are left out, and a warning counts them.
    target : str
        The column to predict. Rows where it is missing are left out. All other columns but ``by``
        are what it is predicted from.
    estimator : PSiLONClassifier or PSiLONRegressor
        With the settings that all models share; it is not fitted itself. With a whole number as
        ``random_state`` a group has the same model whenever it is fitted.
    out : path
        The folder of the models; on a cluster one that all its machines see.
    cluster : str, optional
        ``None`` works in this process. ``"local"`` starts Ray on this machine, and any other
        value is the address of a Ray cluster; both need the extra ``ray``.
    progress : bool, default=True
        Whether to show a progress bar with the time left. It counts tasks of up to 32 groups.

    Returns
    -------
    Path
        The index, a Parquet file with a line per group: group, rows, score (on held-out rows, NaN
        if there were none), bound, sparsity, path, seconds, error, digest (of the rows).

    See Also
    --------
    predict_many : predict a table with the right model per row.
    """
    if not isinstance(estimator, BasePSiLON):
        raise TypeError(
            "The 'estimator' of fit_many must be a PSiLONClassifier or PSiLONRegressor. "
            f"Got {estimator!r} instead."
        )
    check_parameters(type(estimator).__name__, estimator.get_params(deep=False))
    by, target = str(by), str(target)
    if by == target:
        raise ValueError(f"'by' and 'target' must be different columns. Both are {by!r}.")
    rows = as_arrow(table, [by, target])
    keys = key_column(rows, by)
    rows = rows.set_column(rows.column_names.index(by), by, keys)
    groups = groups_of(keys)
    if not groups.names:
        raise ValueError(f"At least one row must have a value in {by!r}. None of them has.")
    folder = ModelFolder(out)
    folder.begin(_settings(rows, by, target, estimator))
    task = GroupTask(folder, estimator, by, target)
    finished = folder.finished()
    _check_rows(task, rows, groups, finished)
    if len(groups.missing):
        warn_user(
            f"{len(groups.missing)} rows without a value in {by!r} belong to no group and are left "
            "out. To fit a model for them, fill the column with a value of its own.",
        )
    _warn_text(rows.drop_columns([by, target]))  # warnings of single groups are not shown
    cells = list(_write_tasks(rows, groups, folder, finished))
    _run(task, cells, cluster, progress)
    folder.clear_work()
    return folder.merge()


def _warn_text(rows: Any) -> None:
    texts = [f.name for f in rows.schema if is_text(f.type) and "dictionary" not in str(f.type)]
    if texts:
        warn_text(read_columns(rows.select(texts).slice(0, SAMPLE)))


def _settings(rows: Any, by: str, target: str, estimator: BasePSiLON) -> dict[str, Any]:
    parameters = {k: plain_data(v) for k, v in estimator.get_params(deep=False).items()}
    return {
        "format": FORMAT,
        "by": by,
        "target": target,
        "keys": str(rows.column(by).type),
        "columns": [name for name in rows.column_names if name not in (by, target)],
        "estimator": type(estimator).__name__,
        "parameters": {k: v for k, v in parameters.items() if k != "verbose"},
    }


def _check_rows(task: GroupTask, rows: Any, groups: Groups, finished: Mapping[str, str]) -> None:
    """Refuse a table in which groups that are finished have other rows than their models."""
    known = [k for k, name in enumerate(groups.names) if name in finished]
    if not known:
        return
    digests = task.digests(rows, groups)
    other = [k for k in known if digests[k] != finished[groups.names[k]]]
    if other:
        raise ValueError(
            "A group that is in the index must have the rows that it was fitted to, in any order. "
            f"The rows of {len(other)} of {len(known)} such groups are others now, among them "
            f"{groups.keys[other[0]].as_py()!r}: use another folder, or give the same rows."
        )


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


def _write_tasks(
    rows: Any, groups: Groups, folder: ModelFolder, finished: Mapping[str, str]
) -> Iterator[Cell]:
    """Write the rows of each task that is not finished to a file, and yield its cell."""
    for planned in _plan_tasks(groups.sizes, groups.names):
        left = [group for group in planned if groups.names[group] not in finished]
        if left:
            part = rows.take(np.concatenate([groups.rows(group) for group in left]))
            yield _write_task(part, [groups.names[group] for group in left], folder)


def _write_task(rows: Any, names: list[str], folder: ModelFolder) -> Cell:
    task = hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]
    folder.write_table(folder.rows(task), rows)
    return {"task": task}


def _run(task: GroupTask, cells: list[Cell], cluster: str | None, progress: bool) -> None:
    """Run all tasks; a group that takes its worker with it is found and named."""
    shown: bool | str = "task" if progress else False
    lost = _lost_tasks(task, cells, cluster, shown)
    single = [cell for failed, _ in lost for cell in _split(task, failed)]
    for cell, error in _lost_tasks(task, single, cluster, shown):
        rows = task.read(cell["task"])
        line = {"rows": len(rows), "error": f"{type(error).__name__}: {error}"}
        task.write_lines(cell["task"], rows, [line])


def _lost_tasks(
    task: GroupTask, cells: list[Cell], cluster: str | None, progress: bool | str
) -> list[tuple[Cell, Exception]]:
    """Run tasks and return those whose workers died again and again, with what Ray says."""
    if not cells:
        return []
    try:
        done = task.folder.done
        run_cells(task, cells, done, cluster=cluster, retries=RETRIES, progress=progress)
    except CellsFailedError as failed:
        if not all(type(error).__module__.startswith("ray.") for _, error in failed.failures):
            raise  # not the fault of a group: a full disk, a folder that is not there
        return failed.failures
    return []


def _split(task: GroupTask, cell: Cell) -> Iterator[Cell]:
    """Make a task of each group of a task."""
    rows = task.read(cell["task"])
    groups = task.groups(rows)
    for group, name in enumerate(groups.names):
        yield _write_task(rows.take(groups.rows(group)), [name], task.folder)
