"""Where which model wins: the test loss over the number of training rows.

Six tables, 250 to 10,000 training rows, one split, the same test rows for all sizes of a table;
protocol "user" of ``experiments.comparison.rivals``, and its environment.

    python -m experiments.comparison.learning_curves --data DIR
"""

from __future__ import annotations

import json
from statistics import geometric_mean
from time import perf_counter
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.comparison.rivals import FITS, ON_ALL_SPLITS
from experiments.data import load_table, reported_loss
from experiments.frames import make_frames, mean_loss

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from experiments.cells import Cell

# The six of the twelve with the most rows: 2,476 to 5,000 are left to test on.
TABLES = ("higgs", "covertype", "house_sales", "bike_sharing_demand", "superconduct", "elevators")
SIZES = (250, 500, 1000, 2000, 5000, 10_000)
MODELS = ON_ALL_SPLITS
STYLES = {
    "psilonnet": ("#14375e", "o", 2.4),
    "CatBoost": ("#c0392b", "s", 1.4),
    "LightGBM": ("#f0a04b", "^", 1.4),
    "RealMLP": ("0.45", "D", 1.4),
}
Line = dict[str, str]


def cells() -> Iterator[Cell]:
    """Yield all cells, small ones first."""
    for rows in SIZES:
        for name in TABLES:
            for model in MODELS:
                yield {"dataset": name, "model": model, "rows": rows, "seed": 0}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one model on the first rows of the largest training part."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"], n_train=max(SIZES), use=cell["rows"])
    begin = perf_counter()
    model = FITS[cell["model"]](table.task, parts, "user")
    seconds = perf_counter() - begin
    loss = reported_loss(table.task, mean_loss(table.task, model, parts["test"]))
    return {"test_loss": loss, "seconds": seconds}


def draw(lines: list[Line], path: Path) -> None:
    """Draw one panel per table."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained", sharex=True)
    for axis, name in zip(axes.flat, TABLES, strict=True):
        for model, (colour, mark, width) in STYLES.items():
            own = [x for x in lines if (x["dataset"], x["model"]) == (name, model)]
            rows, losses = ([float(x[c]) for x in own] for c in ("rows", "test_loss"))
            axis.plot(rows, losses, color=colour, marker=mark, ms=5, lw=width, label=model)
        axis.set_xscale("log")
        axis.set_xticks(SIZES, [f"{size:,}" for size in SIZES], rotation=30)
        axis.set_xticks([], minor=True)
        axis.set_title(name, fontsize=11)
        axis.grid(axis="y", color="0.93")
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("test loss")
    for axis in axes[1]:
        axis.set_xlabel("training rows")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def counts(lines: list[Line]) -> dict[str, int]:
    """Return on how many of the tables we are the best, for each number of rows."""
    best: dict[tuple[str, str], str] = {}
    for line in sorted(lines, key=lambda x: float(x["test_loss"])):
        best.setdefault((line["rows"], line["dataset"]), line["model"])
    return {
        f"best_at_{size}": sum(best[str(size), name] == "psilonnet" for name in TABLES)
        for size in SIZES
    }


def against(lines: list[Line], rival: str) -> dict[str, list[float]]:
    """Return wins over a rival and the geometric mean of the ratios, for each number of rows."""
    loss = {(x["rows"], x["dataset"], x["model"]): float(x["test_loss"]) for x in lines}
    ratios = [
        [loss[str(size), name, "psilonnet"] / loss[str(size), name, rival] for name in TABLES]
        for size in SIZES
    ]
    return {
        f"wins_{rival}": [sum(ratio < 1 for ratio in row) for row in ratios],
        f"over_{rival}": [round(geometric_mean(row), 3) for row in ratios],
    }


def main() -> None:
    """Run the study, write ``learning_curves.csv`` and draw it."""
    arguments = experiment_arguments("The loss over the number of rows.")
    results = run_study("learning_curves", compute, cells(), arguments)
    if arguments.only:
        return
    lines: list[Line] = [
        {
            "dataset": cell["dataset"],
            "model": cell["model"],
            "rows": str(cell["rows"]),
            "test_loss": f"{results[cell]['test_loss']:.5f}",
            "seconds": f"{results[cell]['seconds']:.1f}",
        }
        for cell in cells()
    ]
    write_csv(lines, arguments.results / "learning_curves.csv")
    draw(lines, arguments.results / "learning_curves.png")
    rivals = [against(lines, model) for model in MODELS if model != "psilonnet"]
    print(json.dumps(counts(lines) | {k: v for own in rivals for k, v in own.items()}))


if __name__ == "__main__":
    main()
