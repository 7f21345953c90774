"""The training curves: loss on training and held-out rows, and the bound, over the steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet.plot.style import BLUE, GREY, ORANGE, panels, quieten


class TrainingCurvesDisplay:
    """Losses and bound along the training of the heaviest design, averaged over the folds.

    Parameters
    ----------
    history : dict of lists
        As ``history_`` of a fitted estimator.

    Attributes
    ----------
    axes_ : list of matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, history: dict[str, list[float]]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> TrainingCurvesDisplay:
        """Draw the curves of a fitted estimator.

        Parameters
        ----------
        estimator : PSiLONClassifier or PSiLONRegressor
        axes : sequence of two matplotlib axes, optional
        """
        check_is_fitted(estimator)
        return cls(history=estimator.history_).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> TrainingCurvesDisplay:
        """Draw the two panels."""
        losses, bound = panels(axes, 2, 5.0)
        step = self.history["step"]
        losses.plot(step, self.history["train_loss"], color=GREY, label="training rows")
        if np.isfinite(self.history["valid_loss"]).any():
            losses.plot(step, self.history["valid_loss"], color=BLUE, label="held-out rows")
        losses.set(ylabel="loss")
        losses.legend(frameon=False)
        bound.plot(step, self.history["penalty"], color=ORANGE)
        bound.set(ylabel="bound", xlabel="step")
        for axis in (losses, bound):
            quieten(axis)
        self.axes_, self.figure_ = [losses, bound], losses.figure
        return self
