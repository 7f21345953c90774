"""The regularisation path: loss, bound and sparsity over the strength."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet._extras import require
from psilonnet.plot.style import BLUE, GREY, ORANGE, panels, quieten

PANELS = (
    ("valid_loss", "held-out loss", BLUE),
    ("bound", "bound (1-path-norm)", ORANGE),
    ("near_sparsity", "near-sparsity", GREY),
)
Floats = np.ndarray[Any, np.dtype[np.float64]]
MARKERS = "os^v"  # of each number of knots


class RegularizationPathDisplay:
    """Held-out loss, bound and near-sparsity for each strength that was tried.

    Hollow points belong to strengths that were dropped before the end of training, dashed lines to
    those in use.

    Parameters
    ----------
    path : dict of lists
        As ``path_`` of a fitted estimator.
    members : dict of lists
        As ``members_`` of a fitted estimator: what is in use.

    Attributes
    ----------
    axes_ : list of matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, path: dict[str, list[float]], members: dict[str, list[float]]) -> None:
        self.path = path
        self.members = members

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> RegularizationPathDisplay:
        """Draw the path of a fitted estimator.

        Parameters
        ----------
        estimator : PSiLONClassifier or PSiLONRegressor
        axes : sequence of three matplotlib axes, optional
        """
        check_is_fitted(estimator)
        if estimator.path_ is None:
            raise ValueError(
                "A regularisation path needs strengths that were compared on held-out rows. This "
                "estimator has compared none: fit it with reg_strength='auto' on at least 40 rows."
            )
        return cls(path=estimator.path_, members=estimator.members_).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> RegularizationPathDisplay:
        """Draw the three panels."""
        axes = panels(axes, 3, 6.6)
        path = {name: np.array(column) for name, column in self.path.items()}
        done = path["steps"] == path["steps"].max()
        kinds = np.unique(path["knots"])
        for axis in axes:  # first, so that nothing is drawn on limits that do not fit
            _spread_strengths(axis, path["reg_strength"])
        for axis, (name, label, colour) in zip(axes, PANELS, strict=True):
            for knots, marker in zip(kinds, itertools.cycle(MARKERS)):
                own = path["knots"] == knots
                x, y, filled = path["reg_strength"][own], path[name][own], done[own]
                axis.plot(x, y, color=colour, lw=1, alpha=0.5)
                style = {"edgecolor": colour, "s": 34, "zorder": 3, "marker": marker}
                words = f"{knots:g} pieces per column" if knots else "plain columns"
                axis.scatter(x[filled], y[filled], color=colour, label=words, **style)
                axis.scatter(x[~filled], y[~filled], facecolor="white", **style)
            for strength in set(self.members["reg_strength"]):
                axis.axvline(strength, color=GREY, lw=1, ls="--")
            axis.set_ylabel(label)
            quieten(axis)
        if len(kinds) > 1:
            axes[-1].legend(frameon=False, fontsize=9)
        for axis, (name, _, _) in zip(axes[:2], PANELS, strict=False):
            _spread_values(axis, path[name])
        strengths = ", ".join(f"{s:g}" for s in sorted(set(self.members["reg_strength"])))
        note = f"chosen: {strengths}" + ("" if done.all() else "   (hollow: dropped early)")
        axes[0].set_title(note, fontsize=10)
        axes[-1].set_xlabel("reg_strength")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _spread_strengths(axis: Any, strengths: Floats) -> None:
    """Draw strengths on a logarithmic axis; one alone gets a decade on each side."""
    low, high = strengths.min(), strengths.max()
    if low == high:
        # Around one number there is nothing that limits could be derived from.
        axis.set(
            xscale="log" if low > 0 else "linear", xlim=(low / 10, low * 10) if low else (-1, 1)
        )
        axis.set_xticks([low], [f"{low:g}"])
        axis.xaxis.set_minor_locator(require("matplotlib.ticker", "plot").NullLocator())
    else:
        axis.set_xscale("log" if low > 0 else "symlog")


def _spread_values(axis: Any, values: Floats) -> None:
    """Draw values on a logarithmic axis: large ones, of strengths dropped early, hide the rest."""
    if not (values[np.isfinite(values)] > 0).all():
        return  # no logarithm: a value of zero would be left out
    ticker = require("matplotlib.ticker", "plot")
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(ticker.NullFormatter())
