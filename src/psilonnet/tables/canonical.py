"""Rows in canonical form, so that a weight of k trains the same networks as k equal rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psilonnet.tables.columns import Column


FAR_BEYOND_CHANCE = 100  # two columns of categories that depend on each other: about 3


@dataclass(frozen=True)
class CanonicalRows:
    """Distinct rows in sorted order, and how the given rows became these.

    Attributes
    ----------
    position : ndarray of shape (distinct rows,)
        Where in the table each is found.
    weight : ndarray of shape (distinct rows,)
        The sum of the weights of the rows that are equal to it.
    cell : ndarray of shape (distinct rows,)
        Rows of one cell have equal columns, and differ in the target.
    given : ndarray of shape (given rows of weight above 0,)
        The positions of these in the table, sorted by their distinct row and then by weight, so
        that nothing depends on the order of the table.
    distinct : ndarray of the same shape
        The number of the distinct row that each of them is equal to.
    chance : tuple of float
        The share of the pairs of given rows that would be equal if no column depended on another:
        in all columns, and in the target.
    """

    position: np.ndarray[Any, np.dtype[np.intp]]
    weight: np.ndarray[Any, np.dtype[np.float64]]
    cell: np.ndarray[Any, np.dtype[np.intp]]
    given: np.ndarray[Any, np.dtype[np.intp]]
    distinct: np.ndarray[Any, np.dtype[np.intp]]
    chance: tuple[float, float]

    def copies(self) -> int:
        """Count the rows that repeat another row exactly where chance does not explain it.

        In a table of few different cells rows repeat by chance, and rows of one cell then differ
        in the target. Where nearly all pairs of rows with equal columns have equal targets, beyond
        what chance gives, they were copied if on average at most three rows are equal, or if there
        are many times as many equal pairs as in independent columns.
        """
        rows, cells = np.bincount(self.distinct), np.bincount(self.cell[self.distinct])
        equal, alike = (float((n * (n - 1.0)).sum()) for n in (rows, cells))
        n, (columns, target) = len(self.given), self.chance
        many = equal > FAR_BEYOND_CHANCE * n * (n - 1.0) * columns * target
        same = equal - target * alike >= 0.95 * (1 - target) * alike
        return n - len(rows) if same and (many or n <= 3 * len(rows)) else 0


def canonical_rows(
    columns: Sequence[Column],
    target: np.ndarray[Any, Any],
    weight: np.ndarray[Any, np.dtype[np.float64]],
) -> CanonicalRows:
    """Drop rows of weight zero, merge equal rows by adding their weights, and sort.

    Parameters
    ----------
    columns : sequence of Column
    target : ndarray of shape (rows, targets)
        Rows are equal only if these are, too.
    weight : ndarray of shape (rows,)

    Examples
    --------
    >>> from psilonnet.tables.columns import Column
    >>> column = Column("a", "number", np.array([2.0, 1.0, 2.0]))
    >>> rows = canonical_rows([column], np.zeros((3, 1)), np.ones(3))
    >>> rows.position, rows.weight, rows.distinct
    (array([1, 0]), array([1., 2.]), array([0, 1, 1]))
    """
    kept = np.flatnonzero(weight > 0)
    ranks = [_ranks(values[kept]) for values in (*(c.values for c in columns), *target.T)]
    table = np.stack(ranks, axis=1)
    rows, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    distinct = inverse.reshape(-1)
    other = (rows[1:, : len(columns)] != rows[:-1, : len(columns)]).any(axis=1)
    order = np.lexsort((weight[kept], distinct))
    equal = [_equal_pairs(column) for column in ranks]
    return CanonicalRows(
        position=kept[first],
        weight=np.bincount(distinct, weights=weight[kept]).astype(float),
        cell=np.concatenate([[0], np.cumsum(other)]),
        given=kept[order],
        distinct=distinct[order],
        chance=(math.prod(equal[: len(columns)]), math.prod(equal[len(columns) :])),
    )


def count_repeats(
    known: tuple[Sequence[Column], np.ndarray[Any, Any]],
    new: tuple[Sequence[Column], np.ndarray[Any, Any]],
) -> int:
    """Count the new rows that repeat known ones exactly where chance does not explain it.

    Both are columns and a target of shape (rows, targets); the columns are of the same kinds.
    """
    columns = [
        replace(a, values=np.concatenate([a.values, b.values]))
        for a, b in zip(known[0], new[0], strict=True)
    ]
    target = np.concatenate([known[1], new[1]])
    rows = canonical_rows(columns, target, np.ones(len(target)))
    is_new = rows.given >= len(known[1])
    again = np.isin(rows.distinct[is_new], rows.distinct[~is_new])
    return int(again.sum()) if rows.copies() else 0


def _equal_pairs(ranks: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """Return the share of the pairs of cells that are equal."""
    counts, n = np.bincount(ranks + 1).astype(float), len(ranks)  # the rank of missing cells is -1
    return float((counts * (counts - 1)).sum() / max(n * (n - 1.0), 1.0))


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
