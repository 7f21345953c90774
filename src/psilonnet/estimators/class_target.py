"""Classes that are predicted, as a network sees them: numbers, and logits with a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Standard errors that refute a temperature; see experiments.studies.temperature.
TEMPERATURE_ERRORS = 2.0


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
    is_sorted: ClassVar[bool] = False
    is_log: ClassVar[bool] = False

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

    def log_proba(self, logits: Floats) -> Floats:
        """Return the logarithms of the probabilities, of shape (rows, classes)."""
        logits = _of_all_classes(logits)
        logits = logits - logits.max(axis=1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def score(self, y: Floats, outputs: Floats, weight: Floats) -> float:
        """Return the accuracy of outputs of the network, for class numbers y."""
        return float(np.average(self.numbers(outputs) == y[:, 0], weights=weight))


def _of_all_classes(logits: Floats) -> Floats:
    """Return a logit for each class: of two, the first has 0."""
    if logits.shape[1] > 1:
        return logits
    return np.concatenate([np.zeros_like(logits), logits], axis=1)


def fit_temperature(
    logits: Floats,
    y: np.ndarray[Any, Any],
    weight: Floats,
    counts: Floats,
    standard_errors: float = TEMPERATURE_ERRORS,
) -> float:
    """Return the temperature T nearest to 1 that held-out rows do not refute for ``logits / T``.

    The cross-entropy is convex in 1/T, and its derivative is the sum over the rows of the expected
    logit less that of the true class. T is refuted where that sum is farther from 0 than some of
    its standard errors. So few rows, or rows that are all right by chance, leave T at 1, and many
    rows bring it to the least cross-entropy. The end is found by bisection on log T, which stays
    between 1/20 and 20.

    Parameters
    ----------
    logits : ndarray of shape (rows, 1) for two classes, or (rows, classes)
    y : ndarray of class numbers of shape (rows,)
    weight : ndarray of shape (rows,)
        The weight of each row in the loss.
    counts : ndarray of shape (rows,)
        How many rows each stands for, which have that weight together.
    standard_errors : float
        How many refute a temperature; 0 is for the least cross-entropy.
    """
    logits = _of_all_classes(logits)
    true = logits[np.arange(len(y)), y.astype(int)]

    def excess(inverse: float) -> float:
        """Return by how much, in standard errors, true classes have larger logits than expected."""
        z = logits * inverse
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * logits).sum(axis=1)
        variance = (p * (logits - mean[:, None]) ** 2).sum(axis=1)
        return float(weight @ (true - mean) / np.sqrt((weight**2 / counts) @ variance + 1e-300))

    sign = float(np.sign(excess(1.0)))
    near, far = 0.0, sign * np.log(20)  # log 1/T: refuted, and not known to be
    if sign * excess(1.0) <= standard_errors:
        return 1.0
    for _ in range(60):
        middle = (near + far) / 2
        refuted = sign * excess(float(np.exp(middle))) > standard_errors
        near, far = (middle, far) if refuted else (near, middle)
    return float(np.exp(-far))
