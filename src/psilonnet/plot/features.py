"""The certified sensitivity of each column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet._extras import require
from psilonnet.plot.style import BLUE

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_NAME = 32


class FeatureSensitivityDisplay:
    """How far the output can move with each column: bars that are proven upper bounds.

    Parameters
    ----------
    names : sequence of str
    sensitivity : ndarray of shape (columns,)
        For one standard deviation of a number, or a change of level of a category.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, names: Sequence[str], sensitivity: np.ndarray[Any, Any]) -> None:
        self.names = names
        self.sensitivity = sensitivity

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_features: int = 20, ax: Any = None
    ) -> FeatureSensitivityDisplay:
        """Draw the sensitivities of a fitted estimator.

        Parameters
        ----------
        estimator : PSiLONClassifier or PSiLONRegressor
        max_features : int, default=20
            Draw the columns with the largest bounds only.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator)
        display = cls(names=estimator.encoder_.names, sensitivity=estimator.feature_sensitivity_)
        return display.plot(max_features=max_features, ax=ax)

    def plot(self, *, max_features: int = 20, ax: Any = None) -> FeatureSensitivityDisplay:
        """Draw one bar per column, the largest on top."""
        order = np.argsort(-self.sensitivity)[:max_features]
        if ax is None:
            plt = require("matplotlib.pyplot", "plot")
            size = (6.4, 1.2 + 0.27 * len(order))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        places = np.arange(len(order))
        bars = ax.barh(places, self.sensitivity[order], color=BLUE, height=0.7)
        ax.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        ax.set_yticks(places, [shortened(self.names[k]) for k in order], parse_math=False)
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.set_xlabel(
            "proven: the most that the output moves\n"
            "if this column alone moves by one standard\n"
            "deviation, or to another level"
        )
        left = len(self.sensitivity) - len(order)
        if left > 0:
            ax.set_title(
                f"the {len(order)} largest of {len(self.sensitivity)} columns", fontsize=10
            )
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def shortened(name: str) -> str:
    """Return a name that fits beside a picture."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
