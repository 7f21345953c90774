"""How far to shrink the temperature: 40 small tables, real and made up, judged by unseen rows.

Each table is fitted once; the held-out logits of that fit then give the temperature nearest to 1
that is not refuted by some number of standard errors, and the test rows judge it. 0 is the least
held-out loss; "off" is no calibration.

    python -m experiments.studies.temperature --data DIR
"""

from __future__ import annotations

import json
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import log_loss

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import load_table
from psilonnet import Design, PSiLONClassifier
from psilonnet.estimators import TEMPERATURE_ERRORS, fit_temperature

if TYPE_CHECKING:
    from experiments.cells import Cell

REAL = (
    "higgs", "jannis", "covertype", "compas_two_years", "heloc", "default_of_credit_card_clients",
    "road_safety", "miniboone", "albert", "credit", "magic_telescope", "bioresponse",
    "eye_movements", "electricity", "adult",
)  # fmt: skip
BUNDLED = ("iris", "wine", "breast_cancer", "digits")  # with scikit-learn
MADE_UP = ("separable", "noisy", "noise", "three_classes", "imbalanced")
ROWS = 100
SETTINGS: dict[str, Any] = {"designs": [Design()], "width": 32, "max_steps": 300}
TRIED = (0.0, 0.5, 1.0, 2.0, 3.0)  # standard errors


class Recorded(PSiLONClassifier):
    """A classifier that keeps what its temperature was fitted on."""

    def _calibrated(self, target: Any, outputs: Any, truth: tuple[Any, Any, Any]) -> Any:
        self.recorded_ = (outputs, *truth)
        return super()._calibrated(target, outputs, truth)


def all_tables() -> list[Cell]:
    """Return the 40 tables."""
    cells = [{"table": name, "rows": ROWS, "seed": 0} for name in (*REAL, *BUNDLED)]
    cells += [{"table": "covertype", "rows": 3 * ROWS, "seed": 0}]
    for name in MADE_UP:
        cells += [{"table": name, "rows": rows, "seed": s} for rows in (60, 150) for s in (0, 1)]
    return cells


def make_up(kind: str, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Draw a table of five columns whose classes are more or less certain."""
    x = rng.normal(size=(n, 5))
    score = 2 * x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3]
    if kind == "three_classes":
        return x, np.digitize(score + rng.normal(size=n), (-1.0, 1.0))
    spread = {"separable": 0.0, "noisy": 2.0, "noise": 1e3, "imbalanced": 1.0}[kind]
    return x, (score + spread * rng.normal(size=n) > (3.0 if kind == "imbalanced" else 0.0)) * 1


def read(cell: Cell, data: str) -> tuple[Any, Any, Any, Any]:
    """Return the rows to fit, and at most 5,000 rows to judge."""
    name, n, rng = cell["table"], cell["rows"], np.random.default_rng(cell["seed"])
    if name in MADE_UP:
        x, y = make_up(name, rng, n + 5000)
    elif name in BUNDLED:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        table = load_table(name, data)
        x, y = table.x, table.y
    order = rng.permutation(len(y))[: n + 5000]
    if name in REAL:
        return x.iloc[order[:n]], y[order[:n]], x.iloc[order[n:]], y[order[n:]]
    return x[order[:n]], y[order[:n]], x[order[n:]], y[order[n:]]


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit a table once; return temperatures and test losses of all ways to calibrate."""
    x, y, unseen, truth = read(cell, data)
    model = Recorded(**SETTINGS, random_state=cell["seed"], verbose=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows far outside a hundred rows
        model.fit(x, y)
        logits = model.decision_function(unseen) * model.temperature_
    judge = (logits, truth, model.classes_)
    found: Cell = {"off": {"temperature": 1.0, "loss": log_loss_at(1.0, *judge)}}
    for errors in TRIED:
        temperature = fit_temperature(*model.recorded_, errors)
        loss = log_loss_at(temperature, *judge)
        found[f"{errors:g}"] = {"temperature": temperature, "loss": loss}
    return found


def log_loss_at(temperature: float, logits: Any, truth: Any, classes: Any) -> float:
    """Return the log loss of logits, of which two classes have one, divided by a temperature."""
    scaled = np.asarray(logits) / temperature
    if scaled.ndim == 1:
        scaled = np.stack([np.zeros_like(scaled), scaled], axis=1)
    odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    return float(log_loss(truth, shares, labels=classes))


def main() -> None:
    """Run all cells and write ``temperature.csv``."""
    arguments = experiment_arguments("Shrinking the temperature.")
    cells = all_tables()
    results = run_study("temperature", compute, cells, arguments)
    if arguments.only:
        return
    ways = ["off", *(f"{errors:g}" for errors in TRIED)]
    lines = [{**cell, "errors": way, **results[cell][way]} for cell in cells for way in ways]
    write_csv(lines, arguments.results / "temperature.csv")
    means = {w: math.fsum(line["loss"] for line in lines if line["errors"] == w) for w in ways}
    lowest = {w: min(line["temperature"] for line in lines if line["errors"] == w) for w in ways}
    figures = {
        "tables": len(cells),
        "default": f"{TEMPERATURE_ERRORS:g}",
        "mean_test_loss": {w: round(total / len(cells), 5) for w, total in means.items()},
        "lowest_temperature": {w: round(t, 3) for w, t in lowest.items()},
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
