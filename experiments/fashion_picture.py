"""The picture of Table 3: validation curves, and bound against test loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.fashion_study import Study

# One colour for each kind of penalty, one dash for each model of the kind.
STYLES = {
    "P": ("#2a6f97", "-"),
    "L1-IB": ("#2a6f97", "--"),
    "L2-IB": ("#2a6f97", ":"),
    "Pj": ("#2a6f97", "-."),
    "L1-OB": ("#d1642e", "--"),
    "L2-OB": ("#d1642e", ":"),
    "S": ("0.45", "-"),
}
MARKS = {"-": "o", "--": "s", ":": "^", "-.": "D"}


def draw(study: Study, path: Path) -> None:
    """Draw the chosen net of each model on the left, all fully trained nets on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    _curves(left, study)
    _bounds(right, study)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _curves(axis: plt.Axes, study: Study) -> None:
    best = study.best()
    for model, (colour, dash) in STYLES.items():
        if model in best:
            cell, result = best[model]
            label = f"{model}  ({cell['reg_strength']:g})"
            width = 2.4 if model == "P" else 1.4
            axis.plot(
                result["steps"], result["valid_curve"], dash, color=colour, lw=width, label=label
            )
    ends = [result["valid_curve"][-1] for _, result in best.values()]
    axis.set_ylim(0.95 * min(ends), 2.2 * min(ends))
    axis.set(title="Validation curves", xlabel="step", ylabel="validation cross-entropy")
    axis.legend(title="model  (strength)", frameon=False, fontsize=9)


def _bounds(axis: plt.Axes, study: Study) -> None:
    best = study.best()
    for model, (colour, dash) in STYLES.items():
        for cell, result in study.ranked("full", model):
            chosen = cell == best[model][0]
            x, y = result["improved"], result["test_cross_entropy"]
            face = colour if chosen else "white"
            axis.plot(x, y, MARKS[dash], color=colour, markerfacecolor=face, ms=7)
            if chosen:
                axis.annotate(model, (x, y), xytext=(7, 4), textcoords="offset points", fontsize=9)
    axis.set_xscale("log")
    axis.set(
        title="Bound against test loss (filled: chosen strength)",
        xlabel="improved bound on the Lipschitz constant",
        ylabel="test cross-entropy",
    )
