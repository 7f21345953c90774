"""How good predictions are on rows whose truth is known, and whether they differ at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score

from psilonnet._names import some_of
from psilonnet.tables import weighted_mean_and_deviation, weighted_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]
CONSTANT = 0.05  # of the target's standard deviation: such predictions explain at most a tenth


@dataclass(frozen=True)
class ClassMeasures:
    """How well a classifier predicts the classes of some rows.

    Attributes
    ----------
    labels : list
        The classes of the model; a number behind theirs stands for all others.
    accuracy : float
        The share of rows whose class is right.
    auc : float or None
        The area under the ROC curve. With more than two classes: of each against the rest, the
        mean over the classes that have rows. None if all rows are of one class.
    log_loss : float or None
        The mean of -log(probability of the true class). None if a class is unknown to the model.
    given, predicted : list of int
        Numbers of classes that meet, the true one and the predicted one.
    weight : list of float
        How many rows have this pair: what is not zero of the confusion matrix.
    """

    labels: list[Any]
    accuracy: float
    auc: float | None
    log_loss: float | None
    given: list[int]
    predicted: list[int]
    weight: list[float]

    @property
    def score(self) -> float:
        """The score of scikit-learn."""
        return self.accuracy

    @cached_property
    def rows(self) -> float:
        """The number of rows, or the sum of their weights."""
        return float(sum(self.weight))

    @cached_property
    def shares(self) -> dict[int, float]:
        """The share of each class that has rows."""
        mass = np.bincount(self.given, weights=self.weight)
        return {int(k): float(mass[k] / self.rows) for k in np.flatnonzero(mass)}

    @property
    def most_frequent(self) -> tuple[str, float]:
        """The class that most rows have, and its share: what always saying it would score."""
        k = max(self.shares, key=lambda k: (self.shares[k], -k))
        return self.label(k), self.shares[k]

    @property
    def only_class(self) -> int | None:
        """The class that is predicted for all rows; None if there are several, or only one row."""
        return self.predicted[0] if len(set(self.predicted)) == 1 and self.rows > 1 else None

    @property
    def is_trivial(self) -> bool:
        """Whether one class is predicted for all rows, and it is wrong for some."""
        return self.only_class is not None and self.accuracy < 1

    @property
    def never_predicted(self) -> list[int]:
        """The classes that have rows and are predicted for none, if several are predicted."""
        return [] if self.only_class is not None else sorted({*self.given} - {*self.predicted})

    def label(self, k: int) -> str:
        """Return the label of a class as a word of a sentence."""
        return repr(self.labels[k]) if k < len(self.labels) else "a class unknown to the model"

    def caveat(self, rows: str) -> str:
        """Return what must be said first: that all rows, such as "given rows", get one class."""
        if self.only_class is None or not self.is_trivial:
            return ""
        label = self.label(self.only_class)
        return (
            f"All {self.rows:,.0f} {rows} get the same class, {label}, though "
            f"{1 - self.accuracy:.1%} of them have another class. A prediction that never "
            "changes cannot flip, so bounds and certificates say nothing in favour of this model. "
            "Remedy: other class weights (class_weight='balanced'), a lower reg_strength, more "
            "rows, or another threshold on predict_proba."
        )

    def in_words(self) -> str:
        """Return how good the predictions are, beside those of always saying one class."""
        label, share = self.most_frequent
        words = f"accuracy {self.accuracy:.3f} (always saying {label}: {share:.3f})"
        words += "" if self.log_loss is None else f", log loss {self.log_loss:.3f}"
        words += "" if self.auc is None else f", AUC {self.auc:.3f}"
        never = some_of([self.label(k) for k in self.never_predicted])
        return f"{words}; never predicted: {never}" if never else words

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the labels."""
        names = ("accuracy", "auc", "log_loss", "given", "predicted", "weight")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, data: dict[str, Any], labels: Sequence[Any]) -> ClassMeasures:
        """Return what `to_dict` gave, checked."""
        measures = cls(list(labels), **data)
        numbers = [*measures.given, *measures.predicted]
        _check(
            _is_float(measures.accuracy, most=1.0)
            and (measures.auc is None or _is_float(measures.auc, most=1.0))
            and (measures.log_loss is None or _is_float(measures.log_loss))
            and all(type(k) is int and 0 <= k < len(labels) for k in numbers)
            and all(_is_float(v) and v > 0 for v in measures.weight)
            and 0 < measures.rows < np.inf
            and len(measures.given) == len(measures.predicted) == len(measures.weight)
        )
        return measures


@dataclass(frozen=True)
class NumberMeasures:
    """How well a regressor predicts the targets of some rows.

    Attributes
    ----------
    score : float or None
        The mean R^2 over the targets, or of several quantiles the mean D^2; one row has none.
    rows : float
        The number of rows, or the sum of their weights.
    given, predicted : list of float
        The standard deviation of each target, and of its predictions. With outliers, the quartile
        range of the target over 1.349 stands for the former: wherever it is smaller, and not 0.
    explained : dict from the name of a loss to a float
        D^2, the share of the loss that is saved beside the best constant; losses without one are
        not in it.
    levels : list of float
        Of several quantiles; each stands for a target.
    """

    score: float | None
    rows: float
    given: list[float]
    predicted: list[float]
    explained: dict[str, float] = field(default_factory=dict)
    levels: list[float] = field(default_factory=list)

    @property
    def constant_targets(self) -> list[int]:
        """The targets whose predictions hardly differ; none if there is only one row."""
        pairs = enumerate(zip(self.given, self.predicted, strict=True))
        # Where all targets are equal, predictions differ by rounding at most.
        alike = [k for k, (given, own) in pairs if given == 0 or own <= CONSTANT * given]
        return alike if self.rows > 1 else []

    @property
    def is_trivial(self) -> bool:
        """Whether the predictions of all targets hardly differ."""
        return len(self.constant_targets) == len(self.given)

    def caveat(self, rows: str) -> str:
        """Return what must be said first: that all rows get nearly the same prediction."""
        if not self.constant_targets:
            return ""
        k = max(self.constant_targets, key=lambda k: self.given[k])
        count = f"{self.rows:,.0f} {rows}"
        which = f" of target {k}" if len(self.given) > 1 else ""
        which = f" of the quantile {self.levels[k]:g}" if self.levels else which
        more = len(self.constant_targets) - 1
        which += f" (and {more:,} more)" if more else ""
        if self.given[k] == 0:
            return f"All {count} have the same value{which}: there is nothing to tell apart."
        return (
            f"All {count} get nearly the same prediction{which}: their standard deviation is "
            f"{self.predicted[k]:.2g}, that of the target {self.given[k]:.2g}. A prediction that "
            "hardly varies cannot move, so bounds and ranges say nothing in favour of this model. "
            "Remedy: a lower reg_strength, more steps, more rows or other columns."
        )

    def in_words(self) -> str:
        """Return how good the predictions are."""
        if self.score is None:
            return "one row, no score"
        shares = [f"D^2 {share:.3f} of the {name}" for name, share in self.explained.items()]
        return ", ".join(shares if self.levels else [f"R^2 {self.score:.3f}", *shares])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        names = ("score", "rows", "given", "predicted", "explained", "levels")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, data: dict[str, Any], targets: int) -> NumberMeasures:
        """Return what `to_dict` gave, checked."""
        measures = cls(**data)
        _check(
            all(map(_is_float, [measures.rows, *measures.given, *measures.predicted]))
            and (measures.score is None or _is_float(measures.score, least=-np.inf, most=1.0))
            and len(measures.given) == len(measures.predicted) == targets
            and all(type(name) is str for name in measures.explained)
            and all(_is_float(v, least=-np.inf, most=1.0) for v in measures.explained.values())
            and isinstance(measures.levels, list)
            and len(measures.levels) in (0, targets)
            and all(_is_float(v) and 0 < v < 1 for v in measures.levels)
        )
        return measures


def _is_float(value: Any, least: float = 0.0, most: float = np.inf) -> bool:
    return isinstance(value, float) and math.isfinite(value) and least <= value <= most


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError("what was measured is not valid")


def class_measures(
    labels: Sequence[Any],
    log_proba: Array,
    predicted: Array,
    y: Array,
    weight: Array | None = None,
) -> ClassMeasures:
    """Return how well classes are predicted.

    Parameters
    ----------
    labels : sequence
        The classes.
    log_proba : ndarray of shape (rows, classes)
        The logarithms of the probabilities.
    predicted, y : ndarrays of class numbers of shape (rows,)
        In y, the number of classes stands for those that the model does not know.
    weight : ndarray of shape (rows,), optional
    """
    weight = np.ones(len(y)) if weight is None else weight.astype(float)
    classes = log_proba.shape[1]
    loss = None
    if (y < classes).all():
        loss = float(np.average(-log_proba[np.arange(len(y)), y], weights=weight))
    pairs, place = np.unique(y * classes + predicted, return_inverse=True)
    return ClassMeasures(
        labels=list(labels),
        accuracy=float(np.average(predicted == y, weights=weight)),
        auc=_mean_auc(log_proba, y, weight),
        log_loss=loss,
        given=(pairs // classes).tolist(),
        predicted=(pairs % classes).tolist(),
        weight=np.bincount(place, weights=weight).tolist(),
    )


def _mean_auc(log_proba: Array, y: Array, weight: Array) -> float | None:
    classes = log_proba.shape[1]
    asked = [1] if classes == 2 else range(classes)
    found = [_area_under_curve(log_proba[:, k], y == k, weight) for k in asked]
    areas = [area for area in found if area is not None]
    return float(np.mean(areas)) if areas else None


def _area_under_curve(score: Array, positive: Array, weight: Array) -> float | None:
    """Return how probably a positive row scores above a negative one, where a tie counts half.

    None unless there are rows of both kinds.
    """
    _, place = np.unique(score, return_inverse=True)
    above, below = (np.bincount(place, weights=weight * kind) for kind in (positive, ~positive))
    total = above.sum() * below.sum()
    if total == 0:
        return None
    return float(above @ (np.cumsum(below) - below / 2) / total)


def number_measures(
    predicted: Array,
    y: Array,
    weight: Array | None = None,
    explained: dict[str, float] | None = None,
    levels: Sequence[float] = (),
) -> NumberMeasures:
    """Return how well numbers are predicted.

    Parameters
    ----------
    predicted, y : ndarrays of shape (rows, targets)
    weight : ndarray of shape (rows,), optional
    explained : dict from str to float, optional
        The share of a loss that is saved beside the best constant.
    levels : sequence of float
        If they are given, quantiles of one target are predicted, and y has shape (rows, 1).
    """
    weight = np.ones(len(y)) if weight is None else weight.astype(float)
    shares = explained or {}
    if levels:
        y = np.broadcast_to(y, predicted.shape)
        score = float(np.mean([*shares.values()])) if shares else None
    else:
        score = float(r2_score(y, predicted, sample_weight=weight)) if len(y) > 1 else None
    given = [_robust_standard_deviation(column, weight) for column in y.T]
    own = [weighted_mean_and_deviation(column, weight)[1] for column in predicted.T]
    return NumberMeasures(score, float(weight.sum()), given, own, shares, list(levels))


def _robust_standard_deviation(values: Array, weight: Array) -> float:
    """Return the standard deviation, or its estimate by the quartiles if there are outliers."""
    low, high = weighted_quantile(values, weight, np.array([0.25, 0.75]))
    deviation = weighted_mean_and_deviation(values, weight)[1]
    return float(min(deviation, (high - low) / 1.349)) if high > low else deviation
