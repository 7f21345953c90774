"""The picture of Table 3: validation curves, and bound against test loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from experiments.paper.fashion_study import Study

# Blues and green: the improved bound; red and orange: the original bound; grey: weight decay.
# What each model is, in words: how its rows are normalised, and what its penalty holds down.
WORDS = {
    "P": "L1, one length per layer; improved bound (the paper's proposal)",
    "L1-IB": "L1; improved bound",
    "L2-IB": "L2; improved bound",
    "Pj": "kept in the L1 ball by projection; improved bound",
    "L1-OB": "L1; original 1-path-norm",
    "L2-OB": "L2; original 1-path-norm",
    "S": "L2; weight decay (standard)",
}
STYLES = {
    "P": ("#14375e", "o"),
    "L1-IB": ("#2f7fc1", "s"),
    "L2-IB": ("#7fb8e6", "^"),
    "Pj": ("#2a9d78", "D"),
    "L1-OB": ("#c0392b", "s"),
    "L2-OB": ("#f0a04b", "^"),
    "S": ("0.5", "o"),
}


def draw(study: Study, path: Path) -> None:
    """Draw the chosen net of each model on the left, all fully trained nets on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 6), layout="constrained")
    _curves(left, study)
    _bounds(right, study)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="0.93")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2,
        frameon=False,
        title="model (strength with the least validation loss, filled; hollow: other strengths): "
        "how rows of weights are normalised; what is penalised",
        columnspacing=2.0,
        fontsize=9,
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _curves(axis: Axes, study: Study) -> None:
    best = study.best()
    for model, (cell, result) in best.items():
        colour, mark = STYLES[model]
        axis.plot(
            result["steps"],
            result["valid_curve"],
            color=colour,
            lw=2.6 if model == "P" else 1.4,
            label=_label(model, cell),
            marker=mark,
            markevery=[len(result["steps"]) - 1],
            ms=6,
        )
    last = [result["valid_curve"][-1] for _, result in best.values()]
    # The first steps, and jumps at the peak of the learning rate, may leave the picture.
    axis.set_ylim(0.93 * min(last), 1.35 * max(last))
    axis.set_title("Loss on validation images while training", fontsize=11)
    axis.locator_params(axis="x", nbins=5)
    axis.set(xlabel="step", ylabel="validation cross-entropy (lower is better)")


def _label(model: str, cell: dict[str, float]) -> str:
    strength = f"{cell['reg_strength']:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{model} ({strength}): {WORDS[model]}"


def _bounds(axis: Axes, study: Study) -> None:
    best = study.best()
    for model, (colour, mark) in STYLES.items():
        for cell, result in study.ranked("full", model):
            face = colour if cell == best[model][0] else "white"
            point = (result["improved"], result["test_cross_entropy"])
            axis.plot(*point, mark, color=colour, markerfacecolor=face, ms=8)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_title("Test loss over what is proven (lower left is better)", fontsize=11)
    axis.set(
        xlabel="improved bound: how far the outputs can move",
        ylabel="test cross-entropy",
    )
