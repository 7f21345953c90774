"""Certified radii: how many rows keep their class, for moves of every size."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    axes_ : matplotlib axes
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
        axes: Any = None,
    ) -> CertifiedRadiusDisplay:
        """Draw the curve of a fitted classifier.

        Parameters
        ----------
        estimator : PSiLONClassifier
        X : table
        y : array-like of labels, optional
            If given, only rows that are classified rightly count.
        method : {"global", "local"}
        name : str, optional
        axes : matplotlib axes, optional
        """
        if not hasattr(estimator, "certified_radius"):
            raise ValueError(
                "Certified radii need a classifier. Got a "
                f"{type(estimator).__name__}: use its output_range() instead."
            )
        radius = estimator.certified_radius(X, method=method)
        right = estimator.predict(X) == np.asarray(y) if y is not None else radius >= 0
        display = cls(radius=radius, counted=right, name=name or f"proven, {method}")
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> CertifiedRadiusDisplay:
        """Draw the curve."""
        (axis,) = panels(None if axes is None else [axes], 1, 3.6)
        largest = np.sort(np.where(self.counted, self.radius, -1.0))  # -1: never counts
        shares = 1 - np.arange(len(largest)) / len(largest)
        kept = largest >= 0
        if kept.any():
            moves = np.concatenate([[0.0], largest[kept]])
            axis.step(moves, np.concatenate([shares[kept][:1], shares[kept]]), label=self.name)
        axis.set(
            xlabel="move of every number, in standard deviations of its column",
            ylabel="share of rows whose class stays",
            ylim=(0, 1),
            xlim=(0, None),
        )
        axis.legend(frameon=False)
        quieten(axis)
        self.axes_, self.figure_ = axis, axis.figure
        return self
