"""What is predicted, as a network sees it: class numbers, or scaled numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from psilonnet.tables import weighted_mean_and_deviation, weighted_quantile

Floats = np.ndarray[Any, np.dtype[np.float64]]

PSEUDO_ROWS = 10.0  # that pull the temperature towards 1; see experiments/temperature.py


@dataclass(frozen=True)
class ClassTarget:
    """Classes as numbers 0, 1, ...; two classes have one logit.

    Attributes
    ----------
    classes : ndarray
        The labels in sorted order.
    temperature : float
        Logits are divided by it.
    """

    classes: np.ndarray[Any, Any]
    temperature: float = 1.0

    @property
    def outputs(self) -> int:
        """The number of outputs of the network."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def scale(self) -> Floats:
        """By how much an output of the network is multiplied."""
        return np.full(self.outputs, 1 / self.temperature)

    def encode(self, y: Floats) -> Floats:
        """Return what the network learns: class numbers, as they are."""
        return y

    def decode(self, outputs: Floats) -> Floats:
        """Return logits from the outputs of the network."""
        return outputs * self.scale

    def numbers(self, logits: Floats) -> np.ndarray[Any, np.dtype[np.intp]]:
        """Return the number of the most probable class of each row."""
        if self.outputs == 1:
            return (logits[:, 0] > 0).astype(np.intp)
        return np.asarray(logits.argmax(axis=1))

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float:
        """Return the accuracy of outputs of the network, for class numbers y."""
        return float(np.average(self.numbers(outputs) == y[:, 0], weights=weight))


@dataclass(frozen=True)
class NumberTarget:
    """Numbers less their median, in quartile deviations."""

    center: Floats
    scale: Floats

    @classmethod
    def fit(cls, y: Floats, weight: Floats) -> NumberTarget:
        """Choose center and scale of each target from rows in canonical form."""
        pairs = [_center_and_scale(column, weight) for column in y.T]
        return cls(np.array([c for c, _ in pairs]), np.array([s for _, s in pairs]))

    @property
    def outputs(self) -> int:
        """The number of outputs of the network."""
        return len(self.center)

    def encode(self, y: Floats) -> Floats:
        """Return what the network learns."""
        return (y - self.center) / self.scale

    def decode(self, outputs: Floats) -> Floats:
        """Return predictions from the outputs of the network."""
        return self.center + outputs * self.scale

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float | None:
        """Return the mean R^2 over the targets, for encoded y; one row has none."""
        return float(r2_score(y, outputs, sample_weight=weight)) if len(y) > 1 else None


def _center_and_scale(y: Floats, weight: Floats) -> tuple[float, float]:
    low, median, high = weighted_quantile(y, weight, np.array([0.25, 0.5, 0.75]))
    scale = float(high - low) / 2
    if scale <= 0:  # most values are equal
        scale = weighted_mean_and_deviation(y, weight)[1]
    return float(median), scale if scale > 0 else 1.0


def fit_temperature(
    logits: Floats, y: np.ndarray[Any, Any], weight: Floats, pseudo_rows: float = PSEUDO_ROWS
) -> float:
    """Return the temperature T with the least cross-entropy of ``logits / T``, shrunk towards 1.

    A few held-out rows that are all right would ask for T = 0. So there are further rows, whose
    classes come as often as the probabilities at T = 1 say: the more rows are held out, the less
    these matter. The loss is convex in 1/T, so its derivative has one root; it is found by
    bisection on log T between 1/20 and 20.

    Parameters
    ----------
    logits : ndarray of shape (rows, 1) for two classes, or (rows, classes)
    y : ndarray of class numbers of shape (rows,)
    weight : ndarray of shape (rows,)
        Counts relative to its mean.
    pseudo_rows : float
        The number of further rows.
    """
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    true = logits[np.arange(len(y)), y.astype(int)]
    rows = weight / weight.mean()
    extra = pseudo_rows * rows / len(rows)

    def expected(inverse: float) -> Floats:
        z = logits * inverse
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray((p * logits).sum(axis=1) / p.sum(axis=1))

    wanted = float(rows @ true + extra @ expected(1.0))
    low, high = np.log(1 / 20), np.log(20)
    for _ in range(60):
        middle = (low + high) / 2
        below = (rows + extra) @ expected(float(np.exp(middle))) < wanted
        low, high = (middle, high) if below else (low, middle)
    return float(np.exp(-(low + high) / 2))
