"""Numbers that are predicted, as a network sees them: scaled, as quantiles, or as counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import d2_pinball_score, r2_score

from psilonnet.deploy import LARGEST_LOG
from psilonnet.tables import weighted_mean_and_deviation, weighted_quantile

Floats = np.ndarray[Any, np.dtype[np.float64]]

PINBALL, POISSON = "pinball loss", "Poisson deviance"


@dataclass(frozen=True)
class NumberTarget:
    """Numbers less their median, in quartile deviations.

    Other kinds of targets say ``is_sorted`` if predictions are put in order, and ``is_log`` if an
    output is the logarithm of what is predicted.
    """

    center: Floats
    scale: Floats
    is_log: ClassVar[bool] = False

    @classmethod
    def fit(cls, y: Floats, weight: Floats) -> NumberTarget:
        """Choose center and scale of each target from rows in canonical form."""
        pairs = [_center_and_scale(column, weight) for column in y.T]
        return cls(np.array([c for c, _ in pairs]), np.array([s for _, s in pairs]))

    @property
    def outputs(self) -> int:
        """The number of outputs of the network."""
        return len(self.center)

    @property
    def columns(self) -> int:
        """The number of columns of y."""
        return self.outputs

    @property
    def is_sorted(self) -> bool:
        """Whether there are several quantiles, which are sorted."""
        return False

    def encode(self, y: Floats) -> Floats:
        """Return what the network learns, a column for each output."""
        return (y - self.center) / self.scale

    def restore(self, y: Floats) -> Floats:
        """Return y from what the network learns."""
        return self.center + y * self.scale

    def decode(self, outputs: Floats) -> Floats:
        """Return predictions from the outputs of the network."""
        return self.center + outputs * self.scale

    def invert(self, predictions: Floats) -> Floats:
        """Return outputs of the network from predictions, if each output has its place."""
        return (predictions - self.center) / self.scale

    def limits(self, outputs: Floats, down: Floats, up: Floats) -> tuple[Floats, Floats]:
        """Return what holds all predictions, if each output moves so far down and up at most."""
        middle = self.center + outputs * self.scale
        # The last product and sum are rounded, too, the least of them in steps of 5e-324.
        scale, spare = self.scale * (1 + 1e-12), 1e-15 * np.abs(middle) + 1e-322
        return middle - (scale * down + spare), middle + (scale * up + spare)

    @property
    def error_kinds(self) -> int:
        """The number of columns of errors."""
        return self.outputs

    def errors(self, y: Floats, predicted: Floats) -> Floats:
        """Return how far off predictions are, of shape (rows, kinds); intervals allow for it."""
        return np.abs(y - predicted)

    def interval(
        self, low: Floats, high: Floats, error: Floats, coverage: float
    ) -> tuple[Floats, Floats]:
        """Return what holds all y that are no farther off than an error from some prediction.

        Parameters
        ----------
        low, high : ndarray of the shape of predictions
            What holds all predictions.
        error : ndarray of shape (kinds,)
        coverage : float
            What the errors are for.
        """
        return _outward(low, high, error)

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float | None:
        """Return the mean R^2 over the targets, for encoded y; one row has none."""
        return float(r2_score(y, outputs, sample_weight=weight)) if len(y) > 1 else None

    def explained(self, y: Floats, predicted: Floats, weight: Floats | None) -> dict[str, float]:
        """Return the share of the loss that is saved beside the best constant, if it has a name."""
        return {}


@dataclass(frozen=True)
class QuantileTarget(NumberTarget):
    """Numbers of which quantiles are predicted.

    Attributes
    ----------
    levels : tuple of float between 0 and 1, increasing
        One for all columns of y; or several of one column, an output each. Predictions of several
        are sorted.
    """

    levels: tuple[float, ...] = (0.5,)

    @classmethod
    def of(cls, y: Floats, weight: Floats, levels: tuple[float, ...]) -> QuantileTarget:
        """Center each output at the quantile of all rows, in quartile deviations."""
        columns = [y[:, 0]] * len(levels) if len(levels) > 1 else list(y.T)
        center = [
            float(weighted_quantile(column, weight, np.array([level]))[0])
            for column, level in zip(columns, levels * (len(columns) // len(levels)), strict=True)
        ]
        scale = [_center_and_scale(column, weight)[1] for column in columns]
        return cls(np.array(center), np.array(scale), levels)

    @property
    def is_sorted(self) -> bool:
        """Whether there are several quantiles, which are sorted."""
        return len(self.levels) > 1

    @property
    def columns(self) -> int:
        """The number of columns of y."""
        return 1 if self.is_sorted else self.outputs

    def restore(self, y: Floats) -> Floats:
        """Return y from what the network learns, which has it once for each quantile."""
        return super().restore(y)[:, : self.columns]

    def decode(self, outputs: Floats) -> Floats:
        """Return predictions from the outputs of the network."""
        found = super().decode(outputs)
        return np.sort(found, axis=1) if self.is_sorted else found

    def limits(self, outputs: Floats, down: Floats, up: Floats) -> tuple[Floats, Floats]:
        """Return what holds all predictions: sorted limits are limits of what is sorted."""
        low, high = super().limits(outputs, down, up)
        return (np.sort(low, axis=1), np.sort(high, axis=1)) if self.is_sorted else (low, high)

    @property
    def error_kinds(self) -> int:
        """One for each pair of quantiles, from the outermost inward."""
        return len(self.levels) // 2 if self.is_sorted else super().error_kinds

    def errors(self, y: Floats, predicted: Floats) -> Floats:
        """Return how far y lies outside of each pair of quantiles; below 0 inside of it."""
        if not self.is_sorted:
            return super().errors(y, predicted)
        pairs = np.arange(self.error_kinds)
        return np.maximum(predicted[:, pairs] - y, y - predicted[:, -1 - pairs])

    def interval(
        self, low: Floats, high: Floats, error: Floats, coverage: float
    ) -> tuple[Floats, Floats]:
        """Move the quantiles of the pair that is nearest to the coverage outward by its error.

        An error below 0 moves them inward, and where they would cross they meet halfway. Both ends
        rise with the quantiles, so an interval of all predictions holds that of each.
        """
        if not self.is_sorted:
            return super().interval(low, high, error, coverage)
        spans = [self.levels[-1 - k] - self.levels[k] for k in range(self.error_kinds)]
        pair = int(np.abs(np.array(spans) - coverage).argmin())
        bottom, top = _outward(low[:, [pair]], high[:, [-1 - pair]], error[[pair]])
        least, largest = ((side[:, [pair]] + side[:, [-1 - pair]]) / 2 for side in (low, high))
        return np.minimum(bottom, least), np.maximum(top, largest)

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float | None:
        """Return R^2, of several quantiles the mean D^2 of their pinball losses."""
        if not self.is_sorted or len(y) < 2:
            return super().score(y, outputs, weight)
        found = self.explained(self.restore(y), self.decode(outputs), weight)
        return float(found[PINBALL])

    def explained(self, y: Floats, predicted: Floats, weight: Floats | None) -> dict[str, float]:
        """Return the share of the pinball loss that is saved beside the quantiles of these rows."""
        if len(y) < 2:
            return {}
        columns = predicted.T if self.is_sorted else [predicted]
        shares = [
            d2_pinball_score(y, column.reshape(len(y), -1), sample_weight=weight, alpha=level)
            for column, level in zip(columns, self.levels, strict=True)
        ]
        return {PINBALL: float(np.mean(shares))}


@dataclass(frozen=True)
class CountTarget(NumberTarget):
    """Counts, whose mean is ``exp(center + output)``; the scale is 1."""

    is_log: ClassVar[bool] = True

    @classmethod
    def fit(cls, y: Floats, weight: Floats) -> CountTarget:
        """Center each target at the logarithm of its mean."""
        return cls(np.log(np.average(y, axis=0, weights=weight)), np.ones(y.shape[1]))

    def encode(self, y: Floats) -> Floats:
        """Return counts in units of their mean."""
        return y / np.exp(self.center)

    def restore(self, y: Floats) -> Floats:
        """Return counts from their units."""
        return y * np.exp(self.center)

    def decode(self, outputs: Floats) -> Floats:
        """Return means from the outputs of the network."""
        return np.exp(np.minimum(super().decode(outputs), LARGEST_LOG))

    def invert(self, predictions: Floats) -> Floats:
        """Return outputs of the network from means; no output is low enough for a mean below 0."""
        with np.errstate(divide="ignore"):
            return np.log(np.maximum(predictions, 0.0)) - self.center

    def limits(self, outputs: Floats, down: Floats, up: Floats) -> tuple[Floats, Floats]:
        """Return what holds all means; exp is rounded, too."""
        low, high = (np.exp(np.minimum(z, LARGEST_LOG)) for z in super().limits(outputs, down, up))
        return low * (1 - 1e-14), high * (1 + 1e-14)

    def errors(self, y: Floats, predicted: Floats) -> Floats:
        """Return how far off means are, in standard deviations of a Poisson count."""
        return np.abs(y - predicted) / _deviation(predicted)

    def interval(
        self, low: Floats, high: Floats, error: Floats, coverage: float
    ) -> tuple[Floats, Floats]:
        """Return the same as for numbers, at least 0: so both ends rise with the mean."""
        bottom, _ = _outward(low, low, error * _deviation(low))
        _, top = _outward(high, high, error * _deviation(high))
        return np.maximum(bottom, 0.0), top

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float | None:
        """Return the mean R^2 of the predicted means."""
        return super().score(self.restore(y), self.decode(outputs), weight)

    def explained(self, y: Floats, predicted: Floats, weight: Floats | None) -> dict[str, float]:
        """Return the share of the Poisson deviance that is saved beside the mean of these rows."""
        if len(y) < 2:
            return {}
        mean = np.average(y, axis=0, weights=weight)
        own, constant = (_half_deviances(y, m, weight) for m in (predicted, mean))
        known = constant > 0  # not where all rows are equal
        shares = 1 - own[known] / constant[known]
        return {POISSON: float(shares.mean())} if known.any() else {}


def _half_deviances(y: Floats, mean: Floats, weight: Floats | None) -> Floats:
    """Return half the mean Poisson deviance of each target."""
    positive = np.where(y > 0, y, 1.0)
    logs = np.log(positive) - np.log(np.maximum(mean, np.finfo(float).tiny))
    return np.asarray(np.average(y * logs - y + mean, axis=0, weights=weight))


def _deviation(mean: Floats) -> Floats:
    return np.sqrt(np.maximum(mean, np.finfo(float).tiny))


def _outward(low: Floats, high: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return ends moved outward by an error, and by what rounding can take away."""
    out = error + 1e-15 * (np.maximum(np.abs(low), np.abs(high)) + np.abs(error))
    return low - out, high + out


def _center_and_scale(y: Floats, weight: Floats) -> tuple[float, float]:
    low, median, high = weighted_quantile(y, weight, np.array([0.25, 0.5, 0.75]))
    scale = float(high - low) / 2
    if scale <= 0:  # most values are equal
        scale = weighted_mean_and_deviation(y, weight)[1]
    return float(median), scale if scale > 0 else 1.0
