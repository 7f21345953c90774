"""Where the truth is: intervals and sets that cover it, from errors on rows with known targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from psilonnet._warnings import warn_user
from psilonnet.estimators.conformal import (
    GROUPS,
    HELD_OUT,
    ROWS,
    Errors,
    check_coverage,
    rows_needed,
)
from psilonnet.estimators.exports import ExportedModel
from psilonnet.estimators.reading import check_groups, codes_of

if TYPE_CHECKING:
    from typing_extensions import Self

Array = np.ndarray[Any, Any]


class CoveredModel(ExportedModel):
    """A fitted model that knows how far off it was on rows with known targets."""

    # What the subclasses define.

    def _errors(self, outputs: Array, y: Array) -> Array:
        """Return the errors of outputs of the network, for y as it sees it: (rows, kinds)."""
        raise NotImplementedError

    def _row_errors(self, X: Any, y: Any) -> Array:
        """Return the errors of the model on some rows, of shape (rows, kinds)."""
        raise NotImplementedError

    @property
    def coverage_basis_(self) -> str | None:
        """What the coverage of intervals and sets is measured on.

        "held-out rows" of the fit, "conformalized rows" or "conformalized groups"; None if nothing
        was held out.
        """
        check_is_fitted(self)
        return None if self._known_errors is None else self._known_errors.basis

    def conformalize(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Measure the errors of the model on rows that neither trained it nor chose it.

        After this, an interval or a set covers the target of a new row with at least the asked
        probability, whatever coverage is asked for and however good the model is: if these rows
        and the new one are exchangeable, as independent rows of one source are (split conformal
        prediction). The probability is over these rows and the new row together, not for each
        kind of row by itself.

        Parameters
        ----------
        X : table
        y : array-like of shape (rows,) or (rows, targets)
        groups : array-like of shape (rows,), optional
            Rows of one group, such as a patient, may be alike. With them, the probability is that
            of a row of a new group, if the groups are exchangeable: each group counts as much as
            any other (hierarchical conformal prediction, Lee, Barber and Willett, 2023). Without
            them nothing is promised for rows of new groups.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        check_consistent_length(X, y, groups)
        errors = self._row_errors(X, y)
        weight, basis = np.ones(len(errors)), ROWS
        if groups is not None:
            codes, basis = codes_of(check_groups(groups)), GROUPS
            weight = 1 / np.bincount(codes)[codes]
        self._known_errors = Errors.of(errors, weight, 1.0, basis)
        return self

    def _keep_errors(self, outputs: Array, y: Array, weight: Array, new: float) -> None:
        """Keep the errors on held-out rows; ``new`` is the weight that a new row would have."""
        self._known_errors = Errors.of(self._errors(outputs, y), weight, new, HELD_OUT)

    def _threshold(self, coverage: Any) -> Array:
        """Return the error of each kind that a coverage asks for."""
        check_is_fitted(self)
        coverage = check_coverage(coverage)
        known = self._known_errors
        if known is None:
            raise ValueError(
                "No errors on rows with known targets are kept with this model: nothing was held "
                "out in its fit, or its file is of an older version. Call conformalize(X, y) with "
                "rows that were not used in the fit."
            )
        if coverage > known.most:
            unit = "groups" if known.basis == GROUPS else "rows"
            warn_user(
                f"A coverage of {coverage:g} needs at least {rows_needed(coverage):,} {unit} with "
                f"known targets. There are fewer among the {known.basis}, so that nothing is ruled "
                f"out: intervals are infinite and sets hold all classes. Conformalize more {unit}, "
                f"or ask for a coverage of at most {known.most:.4g}."
            )
        return known.threshold(coverage)


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
