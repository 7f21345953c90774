"""Rows that refute: a table within what was asked, where the model says something else."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from psilonnet._numbers import is_whole
from psilonnet.certify import Goals, class_margins, farthest_cells
from psilonnet.estimators.reading import as_table
from psilonnet.tables import LossWarning, OutOfRangeWarning, with_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from psilonnet.estimators.fitted import FittedModel
    from psilonnet.estimators.number_targets import NumberTarget
    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]
SPARE = 1e-9  # of what a prediction may move: its rounding is far less
RIVALS = 4  # classes with the least margin, which the search aims at


class Refuted(NamedTuple):
    """Rows that were refuted.

    Attributes
    ----------
    rows : ndarray of int of shape (refuted rows,)
        Their positions in the table that was given.
    table : table
        The same rows, moved within what was asked; of the type that was given.
    """

    rows: Array
    table: Any


def class_goals(outputs: Tensor) -> Goals:
    """Return what would give rows another class: that a margin is used up."""
    margins, asked = class_margins(outputs)
    least = margins.topk(min(RIVALS, margins.shape[1]), dim=1, largest=False)
    index = least.indices.unsqueeze(-1).expand(-1, -1, outputs.shape[1])
    return Goals(torch.arange(len(outputs)), -asked.expanded.gather(1, index), least.values)


def range_goals(outputs: Tensor, low: Array, high: Array) -> Goals:
    """Return what would take outputs below or above a range, each of shape (rows, outputs)."""
    eye = torch.eye(outputs.shape[1], dtype=torch.float64).expand(len(outputs), -1, -1)
    up, down = torch.from_numpy(high) - outputs, outputs - torch.from_numpy(low)
    sides = [
        (sign * eye, enough)
        for sign, enough in ((1.0, up), (-1.0, down))
        if bool(enough.isfinite().any())
    ]
    combinations, enough = (torch.cat(part, dim=1) for part in zip(*sides, strict=True))
    return Goals(torch.arange(len(outputs)), combinations, enough)


def safe_moves(target: NumberTarget, outputs: Tensor, low: Array, high: Array) -> Array:
    """Return how far outputs can move down, and then up, while predictions stay in a range.

    Below 0 for rows where that is not certain, in rounded numbers.

    Parameters
    ----------
    target : NumberTarget
    outputs : Tensor of shape (rows, outputs)
    low, high : ndarray of shape (rows, outputs)
        The range of predictions.
    """
    middle = outputs.numpy()
    moves = [middle - target.invert(low), target.invert(high) - middle]
    spare = [SPARE * (1 + np.abs(middle) + np.where(np.isfinite(m), np.abs(m), 0.0)) for m in moves]
    down, up = (m - off for m, off in zip(moves, spare, strict=True))
    least, largest = target.limits(middle, down, up)
    certain = ((low <= least) & (largest <= high)).all(axis=1, keepdims=True)
    return np.where(certain, np.concatenate((down, up), axis=1), -1.0)


def check_budget(budget: Any) -> None:
    """Refuse a number of cases that is none."""
    if not (is_whole(budget) and budget >= 0):
        raise ValueError(
            "The 'budget' must be a whole number of cases, at least 0 (which is for no cases, and "
            f"leaves more rows open). Got {budget!r}."
        )


def verdicts(
    proven: Array,
    refuted: Callable[[Array], Array],
    proven_by_cases: Callable[[Array], Array],
) -> Array:
    """Return "proven", "refuted" or "open" for each row.

    Parameters
    ----------
    proven : ndarray of bool of shape (rows,)
    refuted, proven_by_cases : callable
        Each maps the rows that are left, as bool, to some of them: positions, or bool again.
    """
    words = np.where(proven, "proven", "open").astype("<U7")
    for word, find in (("refuted", refuted), ("proven", proven_by_cases)):
        left = words == "open"
        if left.any():
            words[find(left)] = word
    return words


def refuted_rows(
    model: FittedModel,
    X: Any,
    columns: Sequence[Column],
    delta: Any,
    goals: Goals,
    refutes: Callable[[Array, Array], Array],
) -> Refuted:
    """Look for moves within delta that reach a goal, and return those that ``predict`` confirms.

    Parameters
    ----------
    model : fitted model
    X, columns
        The rows, as they were given and as they were read.
    delta : Perturbation, or what is short for one
    goals : Goals
    refutes : callable
        Maps predictions of moved rows, and their positions, to which of them refute.
    """
    table, columns = as_table(X, type(model).__name__), model.encoder_.matched(columns)
    moved = farthest_cells(model.net_, model.encoder_, columns, delta, goals)
    rows = goals.rows.numpy()
    with warnings.catch_warnings():  # how far rows may move was asked for
        warnings.simplefilter("ignore", OutOfRangeWarning)
        warnings.simplefilter("ignore", LossWarning)
        while True:
            found = with_cells(table, rows, columns, moved)
            if not len(rows):
                return Refuted(rows, found)
            good = refutes(model.predict(found), rows)
            if good.all():
                return Refuted(rows, found)
            rows = rows[good]
