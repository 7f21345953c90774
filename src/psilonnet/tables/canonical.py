"""Rows in canonical form, so that a weight of k is the same as k equal rows, by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psilonnet.tables.columns import Column


@dataclass(frozen=True)
class CanonicalRows:
    """Distinct rows in sorted order: their positions in the table, and their summed weights."""

    position: np.ndarray[Any, np.dtype[np.intp]]
    weight: np.ndarray[Any, np.dtype[np.float64]]


def canonical_rows(
    columns: Sequence[Column],
    others: Sequence[np.ndarray[Any, Any]],
    weight: np.ndarray[Any, np.dtype[np.float64]],
) -> CanonicalRows:
    """Drop rows of weight zero, merge equal rows by adding their weights, and sort.

    Parameters
    ----------
    columns : sequence of Column
    others : sequence of ndarray of shape (rows,)
        Targets and groups: rows are equal only if these are, too.
    weight : ndarray of shape (rows,)

    Examples
    --------
    >>> from psilonnet.tables.columns import Column
    >>> column = Column("a", "number", np.array([2.0, 1.0, 2.0]))
    >>> canonical_rows([column], [np.zeros(3)], np.ones(3))
    CanonicalRows(position=array([1, 0]), weight=array([1., 2.]))
    """
    kept = np.flatnonzero(weight > 0)
    ranks = [_ranks(column.values[kept]) for column in columns]
    ranks += [_ranks(other[kept]) for other in others]
    table = np.stack(ranks, axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    summed = np.bincount(inverse.reshape(-1), weights=weight[kept]).astype(float)
    return CanonicalRows(kept[first], summed)


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the rank of each value among the distinct ones; missing values are equal."""
    if values.dtype == object:
        present = np.array([v is not None for v in values], dtype=bool)
        ranks = np.full(len(values), -1, dtype=np.int64)
        ranks[present] = distinct_words(values[present])[1]
        return ranks
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def distinct_words(
    values: Iterable[str],
) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int64]]]:
    """Return the distinct words in order, and the place of each word among them.

    NumPy's own way gives every word the room of the longest one.

    >>> distinct_words(["b", "a", "b"])
    (['a', 'b'], array([1, 0, 1]))
    """
    words = list(values)
    distinct = sorted(set(words))
    place = {word: k for k, word in enumerate(distinct)}
    return distinct, np.array([place[word] for word in words], dtype=np.int64)
