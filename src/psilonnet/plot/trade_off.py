"""The trade-off: held-out loss against bound, for every snapshot of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from psilonnet.plot.style import INK, design_styles, name_designs, panels, quieten, spread_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WIDE, ROOM = 6.5, 0.22  # points for a letter; share of the height for words above and below
SELECTIONS = ("accurate", "balanced", "provable")


class TradeOffDisplay:
    """Held-out loss against bound: one point for each snapshot, those in use ringed.

    Points further to the left prove more, points further down are more accurate. An average of
    snapshots can be better than each of them: if the candidates of the fit are still there,
    diamonds show what the three selections would make of them.

    Parameters
    ----------
    path : dict of lists
        As ``path_`` of a fitted estimator.
    designs : sequence of Design
        As ``designs_`` of a fitted estimator.
    selections : dict from str to (loss, bound), optional
        The averages that selections choose, by name.

    Attributes
    ----------
    ax_ : matplotlib axes
    figure_ : matplotlib figure
    """

    def __init__(
        self,
        *,
        path: Mapping[str, Sequence[float]],
        designs: Sequence[Any],
        selections: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.path = path
        self.designs = designs
        self.selections = selections or {}

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TradeOffDisplay:
        """Draw the snapshots of a fitted estimator.

        Parameters
        ----------
        estimator : PSiLONClassifier or PSiLONRegressor
            A loaded one has no candidates any more, and so no diamonds.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator)
        if estimator.path_ is None:
            raise ValueError(
                "This picture needs snapshots that were compared on held-out rows. This estimator "
                "has held nothing out: fit it to at least 40 rows, or with 'cv'."
            )
        record = None if estimator.prune else getattr(estimator, "_record", None)
        points = {} if record is None else {word: record.point(word) for word in SELECTIONS}
        return cls(path=estimator.path_, designs=estimator.designs_, selections=points).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> TradeOffDisplay:
        """Draw the points."""
        (ax,) = panels(None if ax is None else [ax], 1, 4.4)
        path = {name: np.array(column) for name, column in self.path.items()}
        loss, bound, weight = path["valid_loss"], path["bound"], path["weight"]
        for number, (design, style) in enumerate(zip(self.designs, design_styles(), strict=False)):
            own = path["design"] == number
            if own.any():
                ax.plot(bound[own], loss[own], lw=1, alpha=0.35, color=style["color"])
                ax.scatter(bound[own], loss[own], s=26, label=design.in_words(), **style)
        used = np.flatnonzero(weight)
        ax.scatter(bound[used], loss[used], s=130, facecolor="none", edgecolor=INK, zorder=4)
        averages = _by_point(self.selections)
        for average_loss, average_bound in averages:
            ax.scatter(average_bound, average_loss, s=44, color=INK, marker="D", zorder=5)
        _set_scales(ax, [*bound, *(b for _, b in averages)], loss)
        _write(ax, [(bound[k], loss[k], f"{weight[k]:.0%}") for k in used], up=1)
        _write(ax, [(b, a, words) for (a, b), words in averages.items()], up=-1)
        notes = ["ringed: in use, with weights"]
        notes += ["diamonds: averages by selection"] if averages else []
        ax.set(xlabel=f"bound\n{'; '.join(notes)}", ylabel="held-out loss")
        name_designs(ax)
        quieten(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _by_point(selections: Mapping[str, tuple[float, float]]) -> dict[tuple[float, float], str]:
    """Return the names at each point; selections may agree."""
    words: dict[tuple[float, float], str] = {}
    for name, point in selections.items():
        words[point] = f"{words[point]}, {name}" if point in words else name
    return words


def _write(ax: Any, labels: list[tuple[float, float, str]], *, up: int) -> None:
    """Write words above points, or below them, in several lines where points are close."""
    ends: list[float] = []  # of each line, in points
    scale = 72 / ax.figure.dpi
    for x, y, words in sorted(labels):
        middle, half = ax.transData.transform((x, y))[0] * scale, WIDE * len(words) / 2
        line = next((k for k, end in enumerate(ends) if end < middle - half), len(ends))
        ends[line : line + 1] = [middle + half]
        ax.annotate(
            words,
            (x, y),
            xytext=(0, up * (8 + 10 * line)),
            textcoords="offset points",
            ha="center",
            va="bottom" if up > 0 else "top",
            fontsize=8,
            color=INK,
            zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "pad": 0.6, "edgecolor": "none"},
        )


def _set_scales(ax: Any, bounds: Sequence[float], losses: np.ndarray[Any, Any]) -> None:
    """Draw bounds on a logarithmic axis; a bound of 0, of a constant network, has a place too."""
    positive = [b for b in bounds if b > 0]
    if len(positive) == len(bounds):
        ax.set_xscale("log")
    elif positive:
        ax.set_xscale("symlog", linthresh=min(positive))
    ax.xaxis.set_major_formatter("{x:g}")
    spread_values(ax, losses)
    ax.margins(0.08, ROOM)
