"""What the pictures share: colours, panels, and light frames."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require

if TYPE_CHECKING:
    from collections.abc import Iterator

BLUE, ORANGE, GREY, INK = "#2a6f97", "#d1792f", "#8a8a8a", "#1d2733"
# Of designs: told apart in print, and by those who do not see red and green as others do.
COLOURS, MARKERS = (BLUE, "#7fb7d4", ORANGE, "#8f5aa8", "#5d8a4a", GREY), "os^vDP"

SPREAD = 5  # largest over smallest, from which on an axis is logarithmic


def panels(axes: Any, count: int, height: float) -> list[Any]:
    """Return the given axes, or new ones below each other with a common x-axis."""
    if axes is not None:
        given = list(axes)
        if len(given) != count:
            raise ValueError(f"This picture needs {count} axes. Got {len(given)} instead.")
        return given
    plt = require("matplotlib.pyplot", "plot")
    _, grid = plt.subplots(
        count, 1, figsize=(6.4, height), sharex=True, squeeze=False, layout="constrained"
    )
    return list(grid[:, 0])


def quieten(axis: Any) -> None:
    """Remove the upper and the right line of the frame, and draw a light grid."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.93")
    axis.set_axisbelow(True)


def design_styles() -> Iterator[dict[str, Any]]:
    """Return colour and marker of the first design, the second, and so on without end."""
    pairs = zip(COLOURS, MARKERS, strict=True)
    return cycle([{"color": colour, "marker": marker} for colour, marker in pairs])


def name_designs(axis: Any) -> None:
    """Write the names of designs above the axes, where no point is; one needs no name."""
    handles, words = axis.get_legend_handles_labels()
    if len(words) > 1:
        columns = 4 if sum(map(len, words)) < 48 else 2
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
        look = {"ncols": columns, "frameon": False, "fontsize": 9, "handletextpad": 0.2}
        axis.legend(handles, words, **place, **look)


def spread_values(axis: Any, values: np.ndarray[Any, Any]) -> None:
    """Draw values on a logarithmic axis if a few large ones would hide the rest."""
    known = values[np.isfinite(values)]
    if not (known > 0).all() or known.max() < SPREAD * known.min():
        return  # zero has no logarithm
    ticker = require("matplotlib.ticker", "plot")
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(ticker.NullFormatter())
