"""What is proven about given rows: how far their columns can move, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from psilonnet.report.facts import is_classifier

Floats = np.ndarray[Any, np.dtype[np.float64]]
AMOUNTS = (0.01, 0.05, 0.1, 0.25)  # standard deviations
LINEAR_WORK = 1000  # rows times outputs times networks; linear proofs of more take minutes
LOCAL_WORK = 4000  # rows times outputs; local proofs of more would take minutes


@dataclass(frozen=True)
class RowProofs:
    """Proofs about rows.

    Attributes
    ----------
    count : int
    method : {"linear", "local", "global"}
        The one that proves most among those that are quick enough for so many rows.
    radius : ndarray of shape (rows,), or None for a regressor or without numbers
        How many standard deviations all numbers can move together before the class can change.
    moves : list of (float, float), empty for a classifier, several targets or no numbers
        For each of AMOUNTS: how far the prediction of the middle row, and of the worst row, can
        move.
    only_class : label or None
        The class that is predicted for all rows, if there are several and it is the same.
    """

    count: int
    method: str
    radius: Floats | None
    moves: list[tuple[float, float]]
    only_class: Any = None


def prove_rows(model: Any, table: Any) -> RowProofs:
    """Return what holds for the rows of a table; nothing is proven where no number can move."""
    count = len(table)
    method = _best_method(model, count)
    if is_classifier(model):
        labels = np.unique(model.predict(table)).tolist()
        only = labels[0] if len(labels) == 1 < count else None
        radius = (
            model.certified_radius(table, method=method) if model.encoder_.has_numbers else None
        )
        return RowProofs(count, method, radius, [], only)
    if model.target_.outputs > 1 or not model.encoder_.has_numbers:
        return RowProofs(count, method, None, [])
    middle = model.predict(table)
    ranges = [model.output_range(table, amount, method=method) for amount in AMOUNTS]
    moves = [_moves(np.maximum(high - middle, middle - low)) for low, high in ranges]
    return RowProofs(count, method, None, moves)


def _best_method(model: Any, count: int) -> str:
    """Return the method that proves most in its time; it depends on sizes, not on a clock."""
    work = count * model.target_.outputs
    if work * model.net_.members <= LINEAR_WORK:
        return "linear"
    return "local" if work <= LOCAL_WORK else "global"


def _moves(farthest: Floats) -> tuple[float, float]:
    return float(np.median(farthest)), float(farthest.max())
