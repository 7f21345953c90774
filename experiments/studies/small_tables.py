"""How to train on a hundred rows: steps, and rows held out, on seven development tables.

The validation part of a table judges, the test part is not touched.

    python -m experiments.studies.small_tables --data DIR
"""

from __future__ import annotations

import csv
import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss

from experiments.cells import experiment_arguments, run_study
from experiments.data import load_table, scale_target, split_rows
from experiments.studies.recipes import DEVELOPMENT
from psilonnet import PSiLONClassifier, PSiLONRegressor

if TYPE_CHECKING:
    from experiments.cells import Cell

ROWS = 100
SEEDS = (0,)
SETTINGS: dict[str, dict[str, Any]] = {
    "3000 steps": {"max_steps": 3000},
    "1000 steps": {"max_steps": 1000},
    "1000 steps, five folds": {"max_steps": 1000, "validation": 5},
}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit a hundred rows of one table in one way."""
    table = load_table(cell["dataset"], data)
    split = split_rows(len(table.y), seed=cell["seed"])
    y = scale_target(table, split.train)
    few = split.train[:ROWS]
    kind = PSiLONRegressor if table.task == "regression" else PSiLONClassifier
    model = kind(**SETTINGS[cell["setting"]], random_state=cell["seed"], verbose=False)
    begin = perf_counter()
    model.fit(table.x.iloc[few], y[few])
    seconds = perf_counter() - begin
    judges = table.x.iloc[split.valid]
    if table.task == "regression":
        loss = float(np.sqrt(np.mean((model.predict(judges) - y[split.valid]) ** 2)))
    else:
        loss = float(log_loss(y[split.valid], model.predict_proba(judges)))
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
