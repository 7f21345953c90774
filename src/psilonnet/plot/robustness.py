"""What is proven, what an attack refutes, and what is open between the two, over the move."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from psilonnet.plot.radius import is_right, name_moves
from psilonnet.plot.style import BLUE, GREY, ORANGE, panels

Array = np.ndarray[Any, Any]
SIZES = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class RobustnessDisplay:
    """The shares of rows whose class provably stays, and whose class no attack was seen to flip.

    The truth lies between the two: what is proven cannot flip, what was attacked in vain may.

    Parameters
    ----------
    sizes : ndarray of shape (sizes,)
        Moves of all numbers, in standard deviations of their columns; the first is 0.
    proven, survived : ndarray of shape (sizes,)
        Shares of rows that count and are proven to stay, and that count and were not refuted.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, sizes: Array, proven: Array, survived: Array) -> None:
        self.sizes, self.proven, self.survived = sizes, proven, survived

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        sizes: Any = SIZES,
        method: str = "auto",
        ax: Any = None,
    ) -> RobustnessDisplay:
        """Prove and attack the rows of a table with a fitted classifier, and draw what is found.

        Parameters
        ----------
        estimator : PSiLONClassifier
        X : table
        y : array-like of labels, optional
            If given, only rows that are classified rightly count.
        sizes : sequence of float
            Moves above 0 of all numbers, in standard deviations.
        method : str
            As in ``is_robust``.
        ax : matplotlib axes, optional
        """
        if not hasattr(estimator, "is_robust"):
            raise ValueError(
                "What can flip is a class. Got a "
                f"{type(estimator).__name__}: use its output_range() instead."
            )
        rows = len(estimator.predict(X))
        counted = np.full(rows, True) if y is None else is_right(estimator, X, y)
        left = counted.copy()  # of the rows that count, those that were not refuted
        moves = np.sort(np.asarray(sizes, dtype=float))
        shares = [(counted.mean(), counted.mean())]
        for size in moves:
            stays = estimator.is_robust(X, size, method=method)
            unknown = np.flatnonzero(left & ~stays)  # who flips at less, flips at more
            if len(unknown):
                flipped = estimator.counterexample(_safe_indexing(X, unknown), size).rows
                left[unknown[flipped]] = False
            shares.append(((counted & stays).mean(), left.mean()))
        proven, survived = np.array(shares).T
        display = cls(sizes=np.concatenate([[0.0], moves]), proven=proven, survived=survived)
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> RobustnessDisplay:
        """Draw both shares, and the gap between them."""
        (ax,) = panels(None if ax is None else [ax], 1, 3.6)
        ax.fill_between(self.sizes, 0, self.proven, color=BLUE, alpha=0.18, linewidth=0)
        ax.fill_between(
            self.sizes,
            self.proven,
            self.survived,
            color=GREY,
            alpha=0.22,
            linewidth=0,
            label="open",
        )
        ax.plot(self.sizes, self.survived, color=ORANGE, marker="s", ms=3.5, label="not refuted")
        ax.plot(self.sizes, self.proven, color=BLUE, marker="o", ms=3.5, label="proven")
        name_moves(ax)
        ax.set_xlim(0, self.sizes.max())
        handles, words = ax.get_legend_handles_labels()
        ax.legend(handles[1:] + handles[:1], words[1:] + words[:1], frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
