"""What accuracy costs: the test loss over the time of a fit, ours at several budgets.

Six tables, 2,000 training rows, one split; protocol "user" of ``experiments.comparison.rivals``,
and its environment. Times are the processor's, on one thread, the choice of settings included.

    python -m experiments.comparison.costs --data DIR
"""

from __future__ import annotations

import json
from math import exp, log
from statistics import mean, median
from time import process_time
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.comparison.learning_curves import STYLES
from experiments.comparison.rivals import FITS
from experiments.data import load_table, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from experiments.cells import Cell

TABLES = ("higgs", "jannis", "covertype", "house_sales", "bike_sharing_demand", "superconduct")
BUDGETS: dict[str, dict[str, Any]] = {  # dearest first
    "psilonnet": {},
    "psilonnet, 1,000 steps": {"max_steps": 1000},
    "psilonnet, 600 steps": {"max_steps": 600},
    "psilonnet, 300 steps": {"max_steps": 300},
}
RIVALS = ("LightGBM", "XGBoost", "CatBoost", "RealMLP")
YARDSTICK = "CatBoost"
Point = tuple[float, float]  # seconds, loss over the yardstick's


def cells() -> Iterator[Cell]:
    """Yield all cells, cheap ones first."""
    for model in (*RIVALS, *reversed(BUDGETS)):
        for name in TABLES:
            yield {"dataset": name, "model": model, "seed": 0}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one model on one table."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"])
    name = cell["model"]
    begin = process_time()
    if name in BUDGETS:
        model = fit_ours(table.task, parts, "user", **BUDGETS[name])
    else:
        model = FITS[name](table.task, parts, "user")
    seconds = process_time() - begin
    loss = reported_loss(table.task, mean_loss(table.task, model, parts["test"]))
    return {"test_loss": loss, "seconds": seconds}


def points(lines: list[Cell]) -> dict[str, Point]:
    """Return median seconds and the geometric mean of the losses over the yardstick's."""
    losses = {(x["dataset"], x["model"]): float(x["test_loss"]) for x in lines}
    found = {}
    for model in dict.fromkeys(x["model"] for x in lines):
        ratios = [losses[name, model] / losses[name, YARDSTICK] for name in TABLES]
        seconds = median(float(x["seconds"]) for x in lines if x["model"] == model)
        found[model] = (seconds, exp(mean(map(log, ratios))))
    return found


def draw(found: dict[str, Point], path: Path) -> None:
    """Draw loss over time, our budgets joined."""
    figure, axis = plt.subplots(figsize=(8, 4.8), layout="constrained")
    ours = [found[model] for model in BUDGETS]
    colour, mark, _ = STYLES["psilonnet"]
    axis.plot(*zip(*sorted(ours), strict=True), color=colour, lw=1, alpha=0.4, zorder=1)
    for model, (seconds, ratio) in found.items():
        own = model in BUDGETS
        shade, sign = (colour, mark) if own else STYLES.get(model, ("#7f8c3f", "v", 0))[:2]
        axis.scatter(seconds, ratio, color=shade, marker=sign, s=45, zorder=2)
        axis.annotate(
            model,
            (seconds, ratio),
            xytext=(7, 5) if own else (-7, 5),
            ha="left" if own else "right",
            textcoords="offset points",
            fontsize=9,
            color=shade,
            weight="bold" if model == "psilonnet" else "normal",
        )
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("seconds of one core to fit 2,000 rows (median of six tables)")
    axis.set_ylabel(f"test loss over that of {YARDSTICK} (lower is better)")
    axis.margins(x=0.22, y=0.1)
    axis.grid(color="0.93")
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    """Run the study, write ``costs.csv`` and draw it."""
    arguments = experiment_arguments("The loss over the time of a fit.")
    results = run_study("costs", compute, cells(), arguments)
    if arguments.only:
        return
    lines = [
        {
            "dataset": cell["dataset"],
            "model": cell["model"],
            "test_loss": f"{results[cell]['test_loss']:.5f}",
            "seconds": f"{results[cell]['seconds']:.1f}",
        }
        for cell in cells()
    ]
    write_csv(lines, arguments.results / "costs.csv")
    found = points(lines)
    draw(found, arguments.results / "costs.png")
    print(json.dumps({m: [round(s, 1), round(r, 4)] for m, (s, r) in found.items()}))


if __name__ == "__main__":
    main()
