"""The regularisation path: loss, bound and sparsity over the strength."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilonnet._extras import require
from psilonnet.plot.style import BLUE, GREY, ORANGE, panels, quieten


class RegularizationPathDisplay:
    """Held-out loss, bound and near-sparsity for each strength that was tried.

    Hollow points belong to strengths that were dropped before the end of training.

    Parameters
    ----------
    path : dict of lists
        As ``path_`` of a fitted estimator.
    reg_strength : float
        The strength in use.

    Attributes
    ----------
    axes_ : list of matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, path: dict[str, list[float]], reg_strength: float) -> None:
        self.path = path
        self.reg_strength = reg_strength

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> RegularizationPathDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : PSiLONClassifier or PSiLONRegressor
        axes : sequence of three matplotlib axes, optional
        """
        if estimator.path_ is None:
            raise ValueError(
                "A regularisation path needs strengths that were compared on held-out rows. This "
                "estimator has compared none: fit it with reg_strength='auto' on at least 20 rows."
            )
        display = cls(path=estimator.path_, reg_strength=estimator.reg_strength_)
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> RegularizationPathDisplay:
        """Draw the three panels."""
        axes = panels(axes, 3, 6.6)
        rows = (
            ("valid_loss", "held-out loss", BLUE),
            ("bound", "bound (1-path-norm)", ORANGE),
            ("near_sparsity", "near-sparsity", GREY),
        )
        strengths = np.array(self.path["reg_strength"])
        steps = np.array(self.path["steps"])
        done = steps == steps.max()
        for axis, (name, label, colour) in zip(axes, rows, strict=True):
            values = np.array(self.path[name])
            axis.plot(strengths, values, color=colour, lw=1, alpha=0.5)
            axis.scatter(strengths[done], values[done], color=colour, s=34, zorder=3)
            hollow = {"facecolor": "white", "edgecolor": colour, "s": 34, "zorder": 3}
            axis.scatter(strengths[~done], values[~done], **hollow)
            axis.axvline(self.reg_strength, color=GREY, lw=1, ls="--")
            axis.set(ylabel=label, xscale="log" if strengths.min() > 0 else "symlog")
            quieten(axis)
        ticker = require("matplotlib.ticker", "plot")
        for axis in axes[:2]:  # what was dropped early would squeeze the rest
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_formatter(ticker.NullFormatter())
        note = f"chosen: {self.reg_strength:g}" + (
            "" if done.all() else "   (hollow: dropped early)"
        )
        axes[0].set_title(note, fontsize=10)
        axes[-1].set_xlabel("reg_strength")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self
