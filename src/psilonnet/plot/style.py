"""What the pictures share: colours, panels, and light frames."""

from __future__ import annotations

from typing import Any

from psilonnet._extras import require

BLUE, ORANGE, GREY = "#2a6f97", "#d1792f", "#8a8a8a"


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
