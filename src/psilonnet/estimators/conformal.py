"""How far off a model was on rows with known targets, and the error that a coverage asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilonnet._numbers import is_real

Array = np.ndarray[Any, Any]

KEPT = 1_000  # errors of a kind; of more rows, quantiles are kept, rounded up
ROUNDING = 1e-12  # of a coverage: what sums of weights lose is less
HELD_OUT, ROWS, GROUPS = "held-out rows", "conformalized rows", "conformalized groups"
BASES = (HELD_OUT, ROWS, GROUPS)


@dataclass(frozen=True)
class Errors:
    """Errors on rows with known targets: sorted, with the weight up to each.

    The error that covers a new row with probability c is the least one up to which lies a share c
    of the weight, where the new row is counted in, as one that is farther off than all others.
    For n rows of equal weight that is the error number ``ceil(c (n + 1))``: split conformal
    prediction.

    Attributes
    ----------
    values : ndarray of shape (kinds, kept)
        Such as one kind per target. They can be infinite.
    mass : ndarray of shape (kinds, kept)
        The weight of all errors up to each, as a share of that of all rows and the new one.
    basis : str
        One of BASES: what rows they are of.
    """

    values: Array
    mass: Array
    basis: str

    @classmethod
    def of(cls, errors: Array, weight: Array, new: float, basis: str) -> Errors:
        """Sort errors, and thin them if they are many.

        Parameters
        ----------
        errors : ndarray of shape (rows, kinds)
        weight : ndarray of shape (rows,)
        new : float
            The weight of the new row.
        basis : str
        """
        order = np.argsort(errors, axis=0, kind="stable")
        values = np.take_along_axis(errors, order, axis=0).T
        upto = np.cumsum(weight[order], axis=0).T
        total = math.fsum(weight)
        upto = upto * (total / upto[:, -1:])  # the rounding of many sums adds up
        if values.shape[1] > KEPT:
            # The first error that reaches each level: what lies between is rounded up to it.
            levels = np.arange(1, KEPT + 1) / KEPT
            places = [np.searchsorted(own, levels * own[-1]).clip(max=len(own) - 1) for own in upto]
            values = np.stack([own[at] for own, at in zip(values, places, strict=True)])
            upto = np.stack([own[at] for own, at in zip(upto, places, strict=True)])
        return cls(values, upto / (total + new), basis)

    @property
    def most(self) -> float:
        """The largest coverage for which the error is not infinite for want of rows."""
        return float(self.mass[:, -1].min()) * (1 + ROUNDING)

    def threshold(self, coverage: float) -> Array:
        """Return the error of each kind that a coverage asks for, infinite if rows are too few."""
        least = coverage * (1 - ROUNDING)
        return np.array(
            [
                own[place] if (place := int(np.searchsorted(mass, least))) < len(own) else np.inf
                for own, mass in zip(self.values, self.mass, strict=True)
            ]
        )


def check_coverage(coverage: Any) -> float:
    """Return a coverage, refused if it is not a share between 0 and 1."""
    if is_real(coverage) and 0 < coverage < 1:
        return float(coverage)
    raise ValueError(
        "The 'coverage' must be a number above 0 and below 1, such as 0.9 for nine rows of ten. "
        f"Got {coverage!r} instead."
    )


def rows_needed(coverage: float) -> int:
    """Return how many rows of equal weight a coverage needs, so that no error is infinite.

    >>> rows_needed(0.9), rows_needed(0.5)
    (9, 1)
    """
    return math.ceil(coverage / (1 - coverage) * (1 - ROUNDING))


def possible_classes(margins: Array, threshold: float) -> Array:
    """Return which classes some row of a box would have in its set, of shape (rows, classes).

    With logits z, the error of class k is ``-log p_k = log(1 + sum_j exp(z_j - z_k))``, and k is
    in the set of a row if its error is at most the threshold or z_k is the largest logit. Both
    follow from the margins ``z_k - z_j``, and both hold for larger margins if they hold for
    smaller ones. So where the largest margin in the box over each j by itself does not bring k in,
    no row of the box has k in its set.

    Parameters
    ----------
    margins : ndarray of shape (rows, classes, classes - 1)
        The largest margin of each class over each of the others in the box around a row.
    threshold : float
    """
    nothing = np.zeros((*margins.shape[:2], 1))
    errors = np.logaddexp.reduce(np.concatenate([nothing, -margins], axis=2), axis=2)
    within = errors <= threshold * (1 + 1e-12) + 1e-12  # the last sums are rounded
    return np.asarray(within | (margins >= 0).all(axis=2))
