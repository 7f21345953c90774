"""Certified radii: how many rows keep their class, for moves of every size."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d

from psilonnet.plot.style import panels, quieten

Array = np.ndarray[Any, Any]


class CertifiedRadiusDisplay:
    """The share of rows whose class provably stays, over the size of the move.

    Draw several models on the same axes to see what a stronger regularisation buys.

    Parameters
    ----------
    radius : ndarray of shape (rows,)
        As ``certified_radius`` of a fitted classifier.
    counted : ndarray of bool of shape (rows,)
        Rows that count; where labels are known, those that are classified rightly.
    name : str
        The name of the curve in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, radius: Array, counted: Array, name: str) -> None:
        self.radius = radius
        self.counted = counted
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,  # noqa: N803
        y: Any = None,
        *,
        method: str = "global",
        name: str | None = None,
        ax: Any = None,
    ) -> CertifiedRadiusDisplay:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : PSiLONClassifier
        X : table
        y : array-like of labels, optional
            If given, only rows that are classified rightly count.
        method : {"global", "local", "linear"}
            As in ``certified_radius``.
        name : str, optional
        ax : matplotlib axes, optional
        """
        if not hasattr(estimator, "certified_radius"):
            raise ValueError(
                "Certified radii need a classifier. Got a "
                f"{type(estimator).__name__}: use its output_range() instead."
            )
        radius = estimator.certified_radius(X, method=method)
        counted = radius >= 0 if y is None else is_right(estimator, X, y)
        display = cls(radius=radius, counted=counted, name=name or f"proven, {method}")
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> CertifiedRadiusDisplay:
        """Draw the curve."""
        (ax,) = panels(None if ax is None else [ax], 1, 3.6)
        largest = np.sort(np.where(self.counted, self.radius, -1.0))  # -1: never counts
        shares = 1 - np.arange(len(largest)) / len(largest)
        kept = largest >= 0
        if kept.any():
            moves = np.concatenate([[0.0], largest[kept]])
            ax.step(moves, np.concatenate([shares[kept][:1], shares[kept]]), label=self.name)
        name_moves(ax)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def name_moves(axis: Any) -> None:
    """Make axes for the share of rows whose class stays, over the size of the move."""
    axis.set(
        xlabel="move of every number, in standard deviations of its column",
        ylabel="share of rows whose class stays",
        ylim=(0, 1),
        xlim=(0, None),
    )
    quieten(axis)


def is_right(estimator: Any, X: Any, y: Any) -> Array:  # noqa: N803
    """Return which rows are classified rightly; labels that are all unknown are a mistake."""
    labels, classes = column_or_1d(y), estimator.classes_.tolist()
    if not set(labels.tolist()) & set(classes):
        raise ValueError(
            f"The labels must be classes of the model: {reprlib.repr(classes)}. None of y is; it "
            f"holds {reprlib.repr(sorted(set(labels.tolist()), key=str))}: give labels of the type "
            "that fit was given."
        )
    return np.asarray(estimator.predict(X) == labels)
