"""Which of the given rows are held out: seeded, by class, and with groups kept together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._numbers import is_whole
from psilonnet._warnings import warn_user
from psilonnet.estimators.reading import codes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.estimators.problem import Problem
    from psilonnet.tables import CanonicalRows

Integers = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Split = tuple[Integers, Integers]  # rows to train on, rows held out

LEAST_ROWS = 40
FOLDS = 5
COPIES = 0.01  # of smaller shares of copies there is no warning


class HeldOutWarning(UserWarning):
    """Nothing could be held out to choose on, or held-out rows say less than they seem to."""


class NothingHeldOutError(ValueError):
    """No rows can be held out of a table; the message is the reason."""


@dataclass(frozen=True)
class GivenRows:
    """The rows of weight above 0 as they were given, before equal ones are merged.

    Attributes
    ----------
    position : ndarray of shape (rows,)
        Where in the table each row is. The rows are sorted by what is in them, so that the order
        of the table does not matter.
    distinct : ndarray of shape (rows,)
        Equal rows have equal numbers.
    weight : ndarray of shape (rows,)
    strata : ndarray of shape (rows,)
        Class numbers, or all zero for regression.
    groups : ndarray of shape (rows,), or None
        Numbers from 0 on.
    copies : int
        How many are copies of others, where chance does not explain it.
    table_rows : int
        The number of rows of the table, those of weight zero included.
    """

    position: Integers
    distinct: Integers
    weight: Floats
    strata: Integers
    groups: Integers | None
    copies: int
    table_rows: int

    @classmethod
    def of(
        cls, rows: CanonicalRows, weight: Floats, labels: Integers, groups: Any = None
    ) -> GivenRows:
        """Return the rows of a table, for class numbers of its distinct rows."""
        return cls(
            position=rows.given,
            distinct=rows.distinct,
            weight=weight[rows.given],
            strata=labels[rows.distinct],
            groups=None if groups is None else codes_of(groups[rows.given]),
            copies=rows.copies(),
            table_rows=len(weight),
        )


@dataclass(frozen=True)
class Folds:
    """The rows of each network to train on, and those held out from it.

    Attributes
    ----------
    problem : Problem
        Its rows may occur several times, each time with a part of their weight.
    splits : list of Split
        One for each network of a design; the held-out sides are all empty if nothing is held out.
    """

    problem: Problem
    splits: list[Split]

    @property
    def held(self) -> Integers:
        """The rows that are held out from some network, each once."""
        return np.unique(np.concatenate([held for _, held in self.splits]))

    def average(self, outputs: Sequence[Floats]) -> Floats:
        """Return the mean output of each held-out row over the networks not trained on it.

        Parameters
        ----------
        outputs : sequence of ndarrays of shape (rows held out from a network, outputs)
        """
        held = self.held
        total = np.zeros((len(held), outputs[0].shape[1]))
        count = np.zeros(len(held))
        for (_, rows), own in zip(self.splits, outputs, strict=True):
            place = np.searchsorted(held, rows)
            total[place] += own
            count[place] += 1
        return np.asarray(total / count[:, None])


def deal_folds(problem: Problem, given: GivenRows, cv: Any, seed: int) -> Folds:
    """Return the folds that a parameter asks for.

    Parameters
    ----------
    problem : Problem
    given : GivenRows
    cv : None, int, or list of splits
        None is five folds; an int asks for so many, also of a table that is too small to be
        asked. Splits are positions in the table of the rows to train on and to hold out.
    seed : int

    Raises
    ------
    NothingHeldOutError
        If nothing can be held out.
    """
    dealt = _hold_out(given, cv, seed)
    distinct, counts, splits = _merge_within_sides(given, dealt)
    whole = problem.parted(distinct, counts)
    splits = [(train, held) for train, held in splits if bool(whole.weight[held].any())]
    if not splits:
        raise NothingHeldOutError("all rows that are held out are of classes of weight 0")
    _warn_of_rows_without_training(given, dealt)
    return Folds(whole, splits)


def _warn_of_rows_without_training(given: GivenRows, splits: Sequence[Split]) -> None:
    trained = np.zeros(len(given.strata), dtype=bool)
    for train, _ in splits:
        trained[train] = True
    if not trained.all():
        warn_user(
            f"{int((~trained).sum())} of {len(trained)} rows are in no training part of 'cv', so "
            "no network learns from them: the model is the average of the networks of the splits. "
            "Use folds (an int), or more splits, to learn from all rows.",
            HeldOutWarning,
        )


def _hold_out(given: GivenRows, cv: Any, seed: int) -> list[Split]:
    """Return splits as positions among the given rows; parameters as in :func:`deal_folds`."""
    if isinstance(cv, list):
        return _check_splits(given, cv)
    if cv is None and len(given.strata) < LEAST_ROWS:
        count = len(given.strata)
        raise NothingHeldOutError(f"there are {count} rows, and {LEAST_ROWS} are needed")
    folds = FOLDS if cv is None else int(cv)
    splits = make_splits(given.strata, given.groups, folds, seed)
    if len(splits) < folds:
        asked = "By default there are" if cv is None else "The 'cv' parameter asks for"
        warn_user(
            f"{asked} {folds} folds. Only {len(splits)} can be held "
            "out without parting a group or losing a class, and so many are used.",
            HeldOutWarning,
        )
    if given.groups is None and given.copies >= COPIES * len(given.strata):
        warn_user(
            f"{given.copies} of {len(given.strata)} rows are exact copies of other rows, columns "
            "and target alike. Some of the rows that are held out have copies among the rows to "
            "train on, so the choice of the networks and held_out_score_ are too optimistic. Drop "
            "the copies if they are a mistake. Otherwise give 'groups' with one label for all "
            "copies of a row, or one row with its sample_weight.",
            HeldOutWarning,
        )
    return splits


def splits_of(cv: Any, y: Any, groups: Any) -> Any:
    """Return 'cv' with a splitter or any iterable made a list of splits of the given rows."""
    if cv is None or is_whole(cv):
        return cv
    if hasattr(cv, "split"):
        return list(cv.split(np.zeros((len(y), 1)), y, groups))
    splits = list(cv)
    if not splits:
        raise ValueError(
            "The 'cv' parameter must hold at least one split. Got none: an iterator can be used "
            "once only, so give a list."
        )
    return splits


def warn_not_chosen(reason: NothingHeldOutError, strength: float, consequences: str) -> None:
    """Say that nothing was chosen, why, and what is used instead."""
    warn_user(
        f"No rows could be held out to choose on: {reason}. The strength is {strength:g}, "
        f"{consequences}. Give more rows, a 'reg_strength' of your own, 'validation_data', or "
        "a number of folds as 'cv'.",
        HeldOutWarning,
    )


def make_splits(strata: Integers, groups: Integers | None, folds: int, seed: int) -> list[Split]:
    """Return one split for each fold.

    Each class stays among the rows to train on: where all rows of a class would be held out at
    once, the smallest of its groups (or one of its rows) is not held out at all.

    Parameters
    ----------
    strata : ndarray of shape (rows,)
        Class numbers; each is spread evenly over the parts. All zero for regression.
    groups : ndarray of shape (rows,), optional
        Numbers from 0 on. Rows of one group are never parted; a group is dealt by its rarest
        class.
    folds : int
        There are never more folds than groups.
    seed : int

    Raises
    ------
    NothingHeldOutError
        If each group is needed for some class.
    """
    units = np.arange(len(strata)) if groups is None else groups
    rng = np.random.default_rng([seed, 1])
    rarity = np.argsort(np.argsort(np.bincount(strata), kind="stable"))
    rarest = np.full(units.max() + 1, len(rarity))
    np.minimum.at(rarest, units, rarity[strata])
    part = _deal(rarest, min(folds, len(rarest)), rng)
    part = _without_last_of_a_class(part, strata, units)[units]
    splits = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in set(part) - {-1}]
    if not splits:
        each = f"each of the {len(rarest)} {'rows' if groups is None else 'groups'} is the only one"
        alone = len(rarest) == 1
        raise NothingHeldOutError("all rows are of one group" if alone else f"{each} of some class")
    return splits


def _deal(strata: Integers, folds: int, rng: np.random.Generator) -> Integers:
    """Give each unit a fold; each stratum is spread evenly."""
    place = np.empty(len(strata))
    for stratum in np.unique(strata):
        members = rng.permutation(np.flatnonzero(strata == stratum))
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return (place * folds).astype(np.int64)


def _without_last_of_a_class(part: Integers, strata: Integers, units: Integers) -> Integers:
    """Return the part of each unit, -1 for those that some class needs in every training."""
    size = np.bincount(units)
    for k in set(part.tolist()) - {-1}:
        for stratum in np.unique(strata):
            own = np.unique(units[strata == stratum])
            if (part[own] == k).all():
                part[own[np.argmin(size[own])]] = -1
    return part


def _check_splits(given: GivenRows, splits_given: Sequence[Any]) -> list[Split]:
    """Return splits that were given as positions in the table."""
    n, strata = given.table_rows, given.strata
    place = np.full(n, -1)
    place[given.position] = np.arange(len(given.position))
    splits = []
    for number, pair in enumerate(splits_given):
        rows = [np.asarray(side) for side in pair] if np.iterable(pair) else []
        whole = len(rows) == 2 and all(r.ndim == 1 and r.dtype.kind in "iu" for r in rows)
        inside = whole and all(((r >= 0) & (r < n)).all() for r in rows)
        masks = any(r.dtype == bool for r in rows)
        usual = "list(splitter.split(X, y)), and weights as sample_weight"
        remedy = "numpy.flatnonzero(mask) for each mask" if masks else usual
        if not inside or len(set(np.concatenate(rows))) < len(rows[0]) + len(rows[1]):
            raise ValueError(
                "Each split of 'cv' must be a pair of positions of rows from 0 to "
                f"{n - 1}, to train on and to hold out, and no row twice or on both sides. Split "
                f"{number} is not: give {remedy}."
            )
        train, held = (np.sort(place[r][place[r] >= 0]) for r in rows)
        if not len(held) or set(strata[train]) != set(strata):
            raise ValueError(
                "Each split of 'cv' must hold out some rows of weight above 0, and leave "
                f"rows of every class to train on. Split {number} does not."
            )
        splits.append((train, held))
    return splits


def _merge_within_sides(
    given: GivenRows, splits: Sequence[Split]
) -> tuple[Integers, Floats, list[Split]]:
    """Merge equal rows that are on the same side of every split.

    Returns
    -------
    distinct : ndarray of shape (merged rows,)
        Their distinct row.
    weight : ndarray of shape (merged rows,)
    splits : list of Split
        Positions of merged rows.
    """
    sides = np.zeros((len(given.distinct), 1 + len(splits)), dtype=np.int64)
    sides[:, 0] = given.distinct
    for k, (train, held) in enumerate(splits, start=1):
        sides[train, k], sides[held, k] = 1, 2
    merged, place = np.unique(sides, axis=0, return_inverse=True)
    summed = np.bincount(place.reshape(-1), weights=given.weight)
    parts = [(np.flatnonzero(side == 1), np.flatnonzero(side == 2)) for side in merged.T[1:]]
    return merged[:, 0], summed.astype(float), parts
