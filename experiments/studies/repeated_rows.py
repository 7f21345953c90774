"""A table of few distinct rows: what held-out rows say, and what unseen rows say.

Two columns of six levels, and the probability of each of the 36 cells is 0.1 or 0.9. A further
column that means nothing makes all rows distinct; it must not change what is chosen by much.

    python -m experiments.studies.repeated_rows --data none
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss

from experiments.cells import experiment_arguments, run_study, write_csv
from psilonnet import Design, PSiLONClassifier

if TYPE_CHECKING:
    from experiments.cells import Cell

ROWS, UNSEEN, SEEDS = 2000, 20_000, 10
SETTINGS: dict[str, Any] = {
    "designs": [Design(), Design(directions="l2")],
    "width": 64,
    "depth": 2,
    "max_steps": 1000,
}
COLUMNS = ("two", "two and noise")
FIGURES = ("held_out_score", "accuracy", "log_loss", "reg_strength", "temperature")


def draw_rows(seed: int, n: int, columns: str, *, unseen: bool) -> tuple[Any, Any]:
    """Draw rows of the table of a seed."""
    chances = np.random.default_rng([seed, 0]).choice([0.1, 0.9], size=(6, 6))
    rng = np.random.default_rng([seed, 1 + unseen])
    cells = rng.integers(0, 6, size=(2, n))
    y = (rng.random(n) < chances[cells[0], cells[1]]).astype(int)
    x = np.array(list("abcdef"), dtype=object)[cells.T]
    if columns != "two":
        x = np.concatenate([x, rng.normal(size=(n, 1)).astype(object)], axis=1)
    return x, y


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one table."""
    seed, columns = cell["seed"], cell["columns"]
    model = PSiLONClassifier(**SETTINGS, random_state=seed, verbose=False)
    model.fit(*draw_rows(seed, ROWS, columns, unseen=False))
    x, y = draw_rows(seed, UNSEEN, columns, unseen=True)
    loss = float(log_loss(y, model.predict_proba(x)))
    said = (model.held_out_score_, model.score(x, y), loss, model.reg_strength_, model.temperature_)
    return dict(zip(FIGURES, said, strict=True))


def main() -> None:
    """Run all cells and write ``repeated_rows.csv``."""
    arguments = experiment_arguments("A table of few distinct rows.", "not used; 'none'")
    cells = [{"columns": c, "seed": seed} for c in COLUMNS for seed in range(SEEDS)]
    results = run_study("repeated_rows", compute, cells, arguments)
    if arguments.only:
        return
    lines = [{**cell, **results[cell]} for cell in cells]
    write_csv(lines, arguments.results / "repeated_rows.csv")
    means = {
        columns: {
            f: round(float(np.mean([v[f] for v in lines if v["columns"] == columns])), 4)
            for f in FIGURES
        }
        for columns in COLUMNS
    }
    print(json.dumps(means))


if __name__ == "__main__":
    main()
