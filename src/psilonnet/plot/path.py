"""The regularisation path: loss, bound and sparsity over the strength."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet._extras import require
from psilonnet.plot.style import INK, design_styles, name_designs, panels, quieten, spread_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PANELS = (
    ("valid_loss", "held-out loss"),
    ("bound", "bound"),
    ("near_sparsity", "near-sparsity"),
)
Floats = np.ndarray[Any, np.dtype[np.float64]]


class RegularizationPathDisplay:
    """Held-out loss, bound and near-sparsity of each snapshot, along the rising strength.

    One line per design. Points in use have a ring; hollow ones were taken early, before the
    strength began to rise.

    Parameters
    ----------
    path : dict of lists
        As ``path_`` of a fitted estimator.
    designs : sequence of Design
        As ``designs_`` of a fitted estimator.

    Attributes
    ----------
    axes_ : list of matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(self, *, path: Mapping[str, Sequence[float]], designs: Sequence[Any]) -> None:
        self.path = path
        self.designs = designs

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
                "A regularisation path needs snapshots that were compared on held-out rows. This "
                "estimator has held nothing out: fit it to at least 40 rows, or with 'cv'."
            )
        return cls(path=estimator.path_, designs=estimator.designs_).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> RegularizationPathDisplay:
        """Draw the three panels."""
        axes = panels(axes, 3, 6.6)
        path = {name: np.array(column) for name, column in self.path.items()}
        strength, early, used = path["reg_strength"], _is_early(path), path["weight"] > 0
        for axis, (name, label) in zip(axes, PANELS, strict=True):
            _spread_strengths(axis, strength)  # first: nothing is drawn on limits that do not fit
            values = path[name]
            for number, (design, style) in enumerate(
                zip(self.designs, design_styles(), strict=False)
            ):
                own = path["design"] == number
                x, y, hollow = strength[own], values[own], early[own]
                axis.plot(x[~hollow], y[~hollow], color=style["color"], lw=1, alpha=0.5)
                look = {"s": 30, "zorder": 3, "marker": style["marker"]}
                axis.scatter(
                    x[~hollow], y[~hollow], color=style["color"], label=design.in_words(), **look
                )
                axis.scatter(
                    x[hollow], y[hollow], facecolor="white", edgecolor=style["color"], **look
                )
            ring = {"facecolor": "none", "edgecolor": INK, "s": 130, "zorder": 4}
            axis.scatter(strength[used], values[used], **ring)
            axis.set_ylabel(label)
            quieten(axis)
        for axis, (name, _) in zip(axes[:2], PANELS, strict=False):
            spread_values(axis, path[name])
        name_designs(axes[0])
        note = "ringed: in use" + ("; hollow: taken early" if early.any() else "")
        axes[-1].set_xlabel(f"reg_strength   ({note})")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _is_early(path: Mapping[str, Floats]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which snapshots have a later one of the same design and strength."""
    kinds = list(zip(path["design"], path["reg_strength"], strict=True))
    last = dict(zip(kinds, path["steps"], strict=True))  # of equal keys the last one stays
    return np.array(
        [step < last[kind] for kind, step in zip(kinds, path["steps"], strict=True)], dtype=bool
    )


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
