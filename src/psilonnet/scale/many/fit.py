"""One model per group of a table: on a cluster through Ray, or in this process."""

from __future__ import annotations

import os
import re
from numbers import Integral
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from psilonnet._numbers import is_whole
from psilonnet._warnings import warn_user
from psilonnet.estimators import BasePSiLON, check_parameters, parameters_to_data
from psilonnet.scale.cells import CellsFailedError, outcomes
from psilonnet.scale.failures import warn_failed
from psilonnet.scale.files.blocks import check_apart, words_of
from psilonnet.scale.many.file_rows import FileRows
from psilonnet.scale.many.folder import ModelFolder
from psilonnet.scale.many.groups import groups_of
from psilonnet.scale.many.shards import read_part, read_tasks, write_shard, write_task
from psilonnet.scale.many.table_rows import TableRows
from psilonnet.scale.many.task import GroupTask
from psilonnet.scale.text_columns import is_text
from psilonnet.tables import read_columns, warn_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from psilonnet.scale.many.groups import Groups
    from psilonnet.scale.many.shards import TaskCell

FORMAT = 3  # of the index: from 2 on it has digests, from 3 on the sizes of what was sampled
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
    max_group_rows: int | None = None,
    progress: bool = True,
) -> Path:
    """Fit one model per group of a table, and write each to a file.

    Run the same again after a stop of any kind, and only the groups without a line in the index
    are fitted; there may be new groups, but those in the index must have the same rows, in any
    order. A group that cannot be fitted has its reason in the index and stops nobody.

    Parameters
    ----------
    table : pandas, polars or Arrow table, or Parquet files
        Files are a path, a pattern such as ``"in/*.parquet"``, a folder, or a list of these. They
        may be larger than memory: their rows are dealt to shards on disk, in ``out/work``.
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
    max_group_rows : int, optional
        How many rows of a group are used at most. Of larger groups a sample is drawn, with the
        ``random_state`` of the estimator; the index says so, and a warning. ``None`` is 100,000 for
        files, and no limit for a table in memory.
    progress : bool, default=True
        Whether to show a progress bar with the time left. It counts tasks of up to 32 groups.

    Returns
    -------
    Path
        The index, a Parquet file with a line per group: group, rows, score (on held-out rows, NaN
        if there were none), bound, sparsity, path, seconds, error, digest (of the rows),
        sampled_from (how many rows the group has, if it is too large to use all).

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
    if max_group_rows is not None and not (is_whole(max_group_rows) and max_group_rows >= 1):
        raise ValueError(
            "The 'max_group_rows' must be None or a whole number of at least 1. Got "
            f"{max_group_rows!r} instead."
        )
    folder = ModelFolder(out)
    rows = _rows_of(table, (by, target, max_group_rows, _seed(estimator)), folder, progress)
    if not rows.rows_in_all:
        raise ValueError(f"At least one row must have a value in {by!r}. None of them has.")
    folder.begin(_settings(rows.schema, by, target, estimator))
    task = GroupTask(folder, estimator, by, target)
    finished = folder.finished()
    _write_shards(rows, task, finished, progress)
    _warn_rows(rows, by)
    _warn_text(rows, [by, target])  # warnings of single groups are not shown
    cells = [cell for number in range(rows.shards) for cell in _missing(task, number, finished)]
    _run(task, cells, cluster, progress)
    folder.clear_work()
    index = folder.merge()
    warn_failed(*folder.failed())
    return index


def _rows_of(
    table: Any, asked: tuple[str, str, int | None, int], folder: ModelFolder, progress: bool
) -> TableRows | FileRows:
    """Return the rows to fit, in memory or in files."""
    path = (str, os.PathLike)
    listed = isinstance(table, (list, tuple)) and table and all(isinstance(t, path) for t in table)
    if not (isinstance(table, path) or listed):
        return TableRows(table, *asked)
    rows = FileRows(table, *asked)
    check_apart(words_of(table), rows.paths, folder.folder, ["index.parquet"])
    rows.survey(folder, progress=progress)
    return rows


def _seed(estimator: BasePSiLON) -> int:
    """Return the seed of samples: a run that is started again must draw the same."""
    given = estimator.get_params(deep=False)["random_state"]
    return int(given) if isinstance(given, Integral) else 0


def _write_shards(
    rows: TableRows | FileRows, task: GroupTask, finished: Mapping[str, str], progress: bool
) -> None:
    """Write the rows of the groups that are not finished, shard by shard."""
    rows.begin(task.folder, progress=progress)
    hidden = not progress or rows.shards == 1
    for number in tqdm(range(rows.shards), desc="shards", unit="shard", disable=hidden):
        path = task.folder.rows(number)
        if not path.exists():
            part = rows.shard(number)
            groups = groups_of(part.column(task.by).combine_chunks())
            _check_rows(task, part, groups, finished)
            write_shard(path, part, groups, finished, rows.large)
    rows.end()


def _missing(task: GroupTask, number: int, finished: Mapping[str, str]) -> Iterator[TaskCell]:
    """Yield what is left of the tasks of a shard."""
    for cell, names in read_tasks(task.folder.rows(number)):
        left = [name for name in names if name not in finished]
        if len(left) == len(names):
            yield cell
        elif left:  # it was split, and the run was stopped then
            yield from (one for name, one in _split(task, cell) if name in left)


def _warn_rows(rows: TableRows | FileRows, by: str) -> None:
    """Warn of rows that no model sees."""
    if rows.missing:
        warn_user(
            f"{rows.missing} rows without a value in {by!r} belong to no group and are left "
            "out. To fit a model for them, fill the column with a value of its own.",
        )
    if rows.large:
        warn_user(
            f"{len(rows.large)} groups have more than {rows.most} rows, up to "
            f"{max(rows.large.values())}. Their models are fitted to a sample of {rows.most} rows; "
            "the column sampled_from of the index tells which they are. To use more rows, raise "
            "'max_group_rows'.",
        )


def _warn_text(rows: TableRows | FileRows, others: list[str]) -> None:
    columns = [field for field in rows.schema if field.name not in others]
    texts = [f.name for f in columns if is_text(f.type) and "dictionary" not in str(f.type)]
    if texts:
        warn_text(read_columns(rows.head(texts, SAMPLE)))


def _settings(schema: Any, by: str, target: str, estimator: BasePSiLON) -> dict[str, Any]:
    given = estimator.get_params(deep=False)
    parameters = parameters_to_data(given)
    if hasattr(given["cv"], "split"):
        # Tells its settings; where it is in memory is none of them, and another in each process.
        parameters["cv"] = re.sub(r" at 0x\w+", "", repr(given["cv"]))
    return {
        "format": FORMAT,
        "by": by,
        "target": target,
        "keys": str(schema.field(by).type),
        "columns": [name for name in schema.names if name not in (by, target)],
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


def _run(task: GroupTask, cells: list[TaskCell], cluster: str | None, progress: bool) -> None:
    """Run all tasks; a group that takes its worker with it is found and named."""
    lost = _lost_tasks(task, cells, cluster, progress)
    single = [cell for failed, _ in lost for _, cell in _split(task, failed)]
    for cell, error in _lost_tasks(task, single, cluster, progress):
        rows = read_part(cell)
        line = {"rows": len(rows), "error": f"{type(error).__name__}: {error}"}
        task.write_lines(cell, rows, [line])


def _lost_tasks(
    task: GroupTask, cells: list[TaskCell], cluster: str | None, progress: bool
) -> list[tuple[TaskCell, Exception]]:
    """Run tasks and return those whose workers died again and again, with what Ray says.

    This process writes nothing: the part of the index that a task writes is its result.
    """
    failures = []
    with tqdm(total=len(cells), unit="task", disable=not (progress and cells)) as bar:
        for cell, _, error in outcomes(task, cells, cluster, retries=RETRIES):
            if error is not None:
                failures.append((cell, error))
            bar.update()
    if not all(type(error).__module__.startswith("ray.") for _, error in failures):
        raise CellsFailedError(failures)  # not the fault of a group: a full disk, no such folder
    return failures


def _split(task: GroupTask, cell: TaskCell) -> Iterator[tuple[str, TaskCell]]:
    """Make a task of each group of a task."""
    rows = read_part(cell)
    groups = task.groups(rows)
    for group, name in enumerate(groups.names):
        path = task.folder.single(name)
        yield name, write_task(path, rows.take(groups.rows(group)), name, cell.found)
