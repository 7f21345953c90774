"""The picture of the rivals: our test loss over each of theirs, a dot per table."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from experiments.comparison.rivals_report import OURS, everywhere, losses_of, wins

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.comparison.rivals_report import Line

BETTER, WORSE = "#14375e", "#c9a27e"
TICKS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)


def draw(lines: list[Line], path: Path) -> None:
    """Draw a row of dots for each rival, protocol "user" on the first split, once ours is done."""
    losses = losses_of(lines, "user")
    if OURS not in everywhere(losses):
        return
    rivals = [model for model in everywhere(losses) if model != OURS]
    rivals.sort(key=lambda model: wins(losses, model)[0], reverse=True)
    size = (8, 1.1 + 0.55 * len(rivals))
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    axis.axvline(1, color="0.6", lw=1)
    for height, rival in enumerate(rivals):
        ratios = sorted(row[OURS] / row[rival] for row in losses.values())
        colours = [BETTER if ratio < 1 else WORSE for ratio in ratios]
        axis.scatter(ratios, [height] * len(ratios), s=34, color=colours, alpha=0.6, lw=0)
        axis.plot([median(ratios)] * 2, [height - 0.3, height + 0.3], color="black", lw=1.6)
    counts = ["{} of {}".format(*wins(losses, rival)) for rival in rivals]
    named = [
        f"against {rival}\nbetter on {count}" for rival, count in zip(rivals, counts, strict=True)
    ]
    axis.set_yticks(range(len(rivals)), named)
    axis.set_xscale("log")
    axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axis.set_xticks([], minor=True)
    axis.set_xlabel(
        "test loss of psilonnet over the rival's (a dot per table; black line: median)\n"
        "← psilonnet is better      worse →"
    )
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(left=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
