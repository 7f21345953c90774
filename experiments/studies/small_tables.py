"""How to train on a hundred rows: width, steps and folds, on seven development tables.

The validation part of a table judges, the test part is not touched.

    python -m experiments.studies.small_tables --data DIR
"""

from __future__ import annotations

import csv
import json
import warnings
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.cells import experiment_arguments, run_study
from experiments.data import DEVELOPMENT, load_table, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss
from psilonnet.tables import OutOfRangeWarning

if TYPE_CHECKING:
    from experiments.cells import Cell

ROWS = 100
SEEDS = (0,)
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "128 wide": {"width": 128},
    "400 steps": {"max_steps": 400},
    "1500 steps": {"max_steps": 1500},
    "ten folds": {"cv": 10},
}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit a hundred rows of one table in one way."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"], use=ROWS)
    begin = perf_counter()
    model = fit_ours(table.task, parts, "user", **SETTINGS[cell["setting"]])
    seconds = perf_counter() - begin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRangeWarning)  # of rows far outside a hundred rows
        loss = reported_loss(table.task, mean_loss(table.task, model, parts["valid"]))
    return {"valid_loss": loss, "bound": model.lipschitz_bound_, "seconds": seconds}


def main() -> None:
    """Run all cells and write ``small_tables.csv``."""
    arguments = experiment_arguments("A hundred rows.")
    cells = [
        {"dataset": name, "setting": setting, "seed": seed}
        for seed in SEEDS
        for name in DEVELOPMENT[:7]
        for setting in SETTINGS
    ]
    results = run_study("small_tables", compute, cells, arguments)
    if arguments.only:
        return
    with (arguments.results / "small_tables.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "setting", "seed", "valid_loss", "bound", "seconds"])
        writer.writerows([*cell.values(), *results[cell].values()] for cell in cells)
    figures = {}
    for setting in SETTINGS:
        logs = [np.log(results[c]["valid_loss"]) for c in cells if c["setting"] == setting]
        figures[setting] = round(float(np.exp(np.mean(logs))), 5)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
