"""The estimators as they come, against scikit-learn's own, on the eight tables.

Protocol "user": a model sees 2,000 rows and makes its own split. scikit-learn's MLP and linear
models get the same encoded columns, scaled.

    python -m experiments.comparison.estimators --data DIR
"""

from __future__ import annotations

import csv
import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor

from experiments.cells import experiment_arguments, run_study
from experiments.data import EIGHT, encode_columns, load_table, scale_target, split_rows
from psilonnet import PSiLONClassifier, PSiLONRegressor

if TYPE_CHECKING:
    from experiments.cells import Cell

MLPS = ("sklearn MLP", "sklearn MLP, early stopping")
MODELS = ("linear", *MLPS, "psilonnet", "psilonnet, not calibrated")


def make_model(name: str, task: str) -> Any:
    """Return a model with its default settings; linear models tune themselves."""
    regression = task == "regression"
    if name == "linear":
        grid = np.logspace(-3, 5, 17)
        if regression:
            return RidgeCV(alphas=grid)
        return LogisticRegressionCV(
            Cs=1 / grid,
            scoring="neg_log_loss",
            max_iter=5000,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        )
    if name in MLPS:
        kind = MLPRegressor if regression else MLPClassifier
        return kind(early_stopping=name == MLPS[1], max_iter=1000, random_state=0)
    if regression:
        return PSiLONRegressor(random_state=0, verbose=False)
    return PSiLONClassifier(random_state=0, verbose=False, calibrate=name == "psilonnet")


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one model on one table."""
    table = load_table(cell["dataset"], data)
    split = split_rows(len(table.y), seed=0)
    y = scale_target(table, split.train)
    plain = cell["model"] not in ("psilonnet", "psilonnet, not calibrated")
    x: Any = encode_columns(table, split.train) if plain else table.x
    train, test = (x[r] if plain else x.iloc[r] for r in (split.train, split.test))
    model = make_model(cell["model"], table.task)
    begin = perf_counter()
    model.fit(train, y[split.train])
    seconds = perf_counter() - begin
    if table.task == "regression":
        loss = float(np.sqrt(np.mean((model.predict(test) - y[split.test]) ** 2)))
    else:
        loss = float(log_loss(y[split.test], model.predict_proba(test)))
    said = {"reg_strength": getattr(model, "reg_strength_", None)}
    if not plain:
        said |= {"bound": model.lipschitz_bound_, "near_sparsity": model.near_sparsity_}
    return {"task": table.task, "test_loss": loss, "seconds": seconds, **said}


def main() -> None:
    """Run all cells and write ``estimators.csv``."""
    arguments = experiment_arguments("The estimators with their defaults.")
    cells = [
        {"dataset": name, "model": model}
        for model in MODELS
        for name in EIGHT
        if not (model == MODELS[-1] and name in EIGHT[4:])  # regression has nothing to calibrate
    ]
    results = run_study("estimators", compute, cells, arguments)
    if arguments.only:
        return
    losses: dict[tuple[str, str], float] = {}
    columns = ("task", "test_loss", "reg_strength", "bound", "near_sparsity", "seconds")
    with (arguments.results / "estimators.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "model", "protocol", *columns])
        for cell in cells:
            result = results[cell]
            losses[cell["dataset"], cell["model"]] = result["test_loss"]
            line = [result.get(name) for name in columns]
            shown = [f"{v:.5g}" if isinstance(v, float) else (v or "") for v in line]
            writer.writerow([cell["dataset"], cell["model"], "user", *shown])
    ours = {name: losses[name, "psilonnet"] for name in EIGHT}
    figures: dict[str, object] = {
        "better_than_linear": sum(ours[n] < losses[n, "linear"] for n in EIGHT),
        "better_than_both_mlps": sum(ours[n] < min(losses[n, m] for m in MLPS) for n in EIGHT),
        "calibration_helps": [n for n in EIGHT[:4] if ours[n] < losses[n, MODELS[-1]]],
    }
    slowest = max(results[cell]["seconds"] for cell in cells if cell["model"] == "psilonnet")
    print(json.dumps({**figures, "slowest_fit_s": slowest}))


if __name__ == "__main__":
    main()
