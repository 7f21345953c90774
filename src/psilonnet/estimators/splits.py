"""Which rows are held out: seeded, by class, and with groups kept together."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilonnet.estimators.parameters import is_whole

Integers = np.ndarray[Any, np.dtype[np.int64]]
Split = tuple[Integers, Integers]  # rows to train on, rows held out

LEAST_ROWS = 20


def make_splits(
    strata: Integers, groups: Integers | None, validation: float, seed: int
) -> list[Split] | None:
    """Return one split for a fraction, or one per fold; None for a table too small to split.

    Parameters
    ----------
    strata : ndarray of shape (rows,)
        Class numbers; each is spread evenly over the parts. All zero for regression.
    groups : ndarray of shape (rows,), optional
        Rows of one group are never parted.
    validation : float or int
        A fraction of the rows, or a number of folds.
    seed : int

    Notes
    -----
    A table is too small with fewer than 20 distinct rows, if a class would be missing from the rows
    to train on, or with fewer groups than folds.
    """
    in_folds = is_whole(validation)
    n_parts = int(validation) if in_folds else max(2, round(1 / validation))
    units = np.arange(len(strata)) if groups is None else groups
    if len(strata) < LEAST_ROWS or len(set(units)) < n_parts:
        return None
    rng = np.random.default_rng([seed, 1])
    if groups is not None:
        part = _deal(np.zeros(units.max() + 1, dtype=np.int64), rng)[units]
    else:
        part = _deal(strata, rng)
    if in_folds:
        fold = (part * n_parts).astype(int).clip(max=n_parts - 1)
        held = [fold == k for k in range(n_parts)]
    else:
        held = [part < validation]
    splits = [(np.flatnonzero(~h), np.flatnonzero(h)) for h in held]
    usable = all(len(a) and len(b) and set(strata[a]) == set(strata) for a, b in splits)
    return splits if usable else None


def _deal(strata: Integers, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Give each unit a number between 0 and 1, evenly spread within each stratum."""
    place = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        place[rng.permutation(members)] = (np.arange(len(members)) + 0.5) / len(members)
    return place
