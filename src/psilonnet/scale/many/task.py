"""What a task of fit_many does: read its rows, fit its groups side by side, write files."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from psilonnet._extras import require
from psilonnet.estimators import fit_together
from psilonnet.scale.many.digests import digests_of, has_value
from psilonnet.scale.many.groups import groups_of
from psilonnet.scale.many.shards import read_part

if TYPE_CHECKING:
    from psilonnet.estimators import BasePSiLON
    from psilonnet.scale.many.folder import ModelFolder
    from psilonnet.scale.many.groups import Groups
    from psilonnet.scale.many.shards import TaskCell


@dataclass(frozen=True)
class GroupTask:
    """A function over tasks; what it does depends on the rows of the task alone."""

    folder: ModelFolder
    estimator: BasePSiLON
    by: str
    target: str

    def __call__(self, cell: TaskCell) -> None:
        """Fit all groups of a task, unless its part of the index is there."""
        if self.folder.shard(cell.task).exists():  # the worker was lost after the last write
            return
        table = read_part(cell)
        groups = self.groups(table)
        parts = [self._part(table.take(groups.rows(k))) for k in range(len(groups.names))]
        models = [clone(self.estimator).set_params(verbose=False) for _ in parts]
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about columns of single groups
            errors = fit_together(models, parts)
        seconds = (perf_counter() - start) / len(parts)
        errors = [
            error if len(y) else ValueError(f"No row of the group has a value in {self.target!r}.")
            for (_, y), error in zip(parts, errors, strict=True)
        ]
        lines = [
            {"rows": len(y), "seconds": seconds, **self._line(name, model, error)}
            for name, (_, y), model, error in zip(groups.names, parts, models, errors, strict=True)
        ]
        self.write_lines(cell, table, lines)

    def groups(self, rows: Any) -> Groups:
        """Return the groups of rows of a task, whose keys have the type of the whole table's."""
        return groups_of(rows.column(self.by).combine_chunks())

    def digests(self, rows: Any, groups: Groups) -> list[str]:
        """Return a digest of the rows of each group."""
        return digests_of(rows, groups, self.by, self.target)

    def write_lines(self, cell: TaskCell, rows: Any, lines: list[dict[str, Any]]) -> None:
        """Write the part of the index about the groups of a task, a line for each."""
        groups = self.groups(rows)
        found = [{"sampled_from": cell.found.get(name)} for name in groups.names]
        lines = [line | own for line, own in zip(lines, found, strict=True)]
        table = _index_lines(groups.keys, lines, self.digests(rows, groups))
        self.folder.write_table(self.folder.shard(cell.task), table)

    def _part(self, rows: Any) -> tuple[Any, Any]:
        """Return the columns and the target of a group, rows without a target left out."""
        rows = rows.filter(has_value(rows.column(self.target)))
        return rows.drop_columns([self.by, self.target]), rows.column(self.target).to_numpy()

    def _line(self, name: str, model: BasePSiLON, error: Exception | None) -> dict[str, Any]:
        if error is not None:
            return {"error": f"{type(error).__name__}: {error}"}
        path = self.folder.model(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
        return {
            "score": model.held_out_score_,
            "bound": model.lipschitz_bound_,
            "sparsity": model.sparsity_,
            "path": path.relative_to(self.folder.folder).as_posix(),
        }


def _index_lines(keys: Any, lines: list[dict[str, Any]], digests: list[str]) -> Any:
    """Return a part of the index; numbers that a line does not have are NaN."""
    pa = require("pyarrow", "parquet")
    numbers = ("score", "bound", "sparsity", "seconds")
    columns: dict[str, Any] = {
        "group": keys,
        "rows": pa.array([line["rows"] for line in lines], pa.int64()),
        "digest": pa.array(digests, pa.string()),
        "sampled_from": pa.array([line["sampled_from"] for line in lines], pa.int64()),
    }
    for name in numbers:
        given = [line.get(name) for line in lines]
        columns[name] = pa.array([math.nan if v is None else v for v in given], pa.float64())
    for name in ("path", "error"):
        columns[name] = pa.array([line.get(name) for line in lines], pa.string())
    order = ("group", "rows", "score", "bound", "sparsity", "path", "seconds", "error", "digest")
    return pa.table({name: columns[name] for name in (*order, "sampled_from")})
