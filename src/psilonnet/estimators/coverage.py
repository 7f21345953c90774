"""Where the truth is: intervals and sets that cover it, from errors on rows with known targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from psilonnet._warnings import warn_user
from psilonnet.estimators.class_certificates import ClassCertificates
from psilonnet.estimators.conformal import (
    GROUPS,
    HELD_OUT,
    ROWS,
    Errors,
    check_coverage,
    possible_classes,
    rows_needed,
)
from psilonnet.estimators.exports import ExportableModel
from psilonnet.estimators.range_certificates import RangeCertificates
from psilonnet.estimators.reading import check_groups, codes_of

if TYPE_CHECKING:
    from typing_extensions import Self

Array = np.ndarray[Any, Any]


class CoveredModel(ExportableModel):
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
        """The rows that the coverage of intervals and sets is measured on.

        It is "held-out rows" (of the fit), "conformalized rows" or "conformalized groups", and
        None if nothing was held out.
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
            Rows of one group, such as a patient, may be alike. With groups, the probability is
            that of a row of a new group, if the groups are exchangeable: each group counts as much
            as any other (hierarchical conformal prediction, Lee, Barber and Willett, 2023). Without
            groups nothing is promised for rows of new groups.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        check_consistent_length(X, y, groups)
        if len(y) == 0:
            raise ValueError("There must be at least one row to conformalize. Got none.")
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


class CoveringSets(ClassCertificates, CoveredModel):
    """A fitted classifier with sets that cover the true class."""

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, delta: Any = None, method: str = "auto"
    ) -> Array:
        """Return sets of classes that hold the true class of a new row, with a probability.

        A set holds the classes whose probability is at least a threshold, and the most probable
        one in any case. After :meth:`conformalize` it holds the true class with at least the asked
        probability, if the new row and the conformalized ones are exchangeable. Without it, the
        threshold is a quantile over the rows held out in the fit, and the coverage is empirical:
        their probabilities are of one network for each pick, slightly worse than those of the
        average of five; and the same rows chose the average and fitted the temperature. After a
        fit with ``groups`` nothing is promised for rows of new groups, unless whole groups were
        conformalized. The coverage is that of all classes together: a rare class can be missed
        more often.

        Parameters
        ----------
        X : table
        coverage : float, default=0.9
            Above 0 and below 1.
        delta : as for :meth:`is_robust`, optional
            The cells of these rows may differ from the true ones by so much, in the worst way,
            while the conformalized or held-out rows are as they were measured. A set then holds
            every class that some row in the box around the row would have in its set, so that the
            true class is in it with the same probability. Errors of measurement that the known
            rows share need no delta.
        method : {"auto", "global", "local", "linear"}
            How the moves within delta are bounded, as for :meth:`is_robust`. Without a delta it has
            no effect.

        Returns
        -------
        ndarray of bool of shape (rows, classes)
            True where a class, in the order of ``classes_``, is in the set of the row. At least one
            class of each row is.
        """
        threshold = float(self._threshold(coverage)[0])
        if delta is None:
            logits = self._outputs(X)
            sets = -self.target_.log_proba(logits) <= threshold
            sets[np.arange(len(sets)), self.target_.numbers(logits)] = True
            return np.asarray(sets)
        scale = self.target_.scale[0]
        parts = self._certifier.largest_margins(self._read(X, reset=False), delta, method=method)
        return np.concatenate([possible_classes(part * scale, threshold) for part in parts])


class CoveringIntervals(RangeCertificates, CoveredModel):
    """A fitted regressor with intervals that cover the true number."""

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, delta: Any = None, method: str = "auto"
    ) -> tuple[Array, Array]:
        """Return intervals that hold the true target of a new row, with a probability.

        An interval is the prediction plus and minus one error, the same for all rows. With several
        quantiles its width follows the row: it goes from one quantile less an error to another
        plus that error, for the pair that is nearest to the coverage (conformalized quantile
        regression); and for ``loss="poisson"`` the error is in roots of the mean, and no end is
        below 0.

        After :meth:`conformalize` an interval holds the target with at least the asked probability,
        if the new row and the conformalized ones are exchangeable. Without it, the error is a
        quantile of those on rows held out in the fit, and the coverage is empirical: these errors
        are of one network for each pick, slightly larger than those of the average of five; and
        the same rows chose the average. After a fit with ``groups`` nothing is promised for rows of
        new groups, unless whole groups were conformalized.

        Parameters
        ----------
        X : table
        coverage : float, default=0.9
            Above 0 and below 1.
        delta : as for :meth:`output_range`, optional
            The cells of these rows may differ from the true ones by so much, in the worst way,
            while the conformalized or held-out rows are as they were measured. The interval holds
            the truth with the same probability: it goes from the least prediction in the box
            around the row, less the error, to the largest one plus the error, and the true row is
            in that box. Errors of measurement that the known rows share need no delta: they are
            in the errors of the model already.
        method : {"auto", "global", "local", "linear"}
            How the moves within delta are bounded, as for :meth:`output_range`. Without a delta it
            has no effect.

        Returns
        -------
        low, high : ndarray of shape (rows,) or (rows, targets)
            With several targets, each is covered with the asked probability by itself, and all of
            them together less often.
        """
        error = self._threshold(coverage)
        ends = (self._outputs(X),) * 2 if delta is None else self._ranges(X, delta, method)
        low, high = self.target_.interval(*ends, error, coverage)
        alone = self._one_target or self.target_.is_sorted
        return (low[:, 0], high[:, 0]) if alone else (low, high)
