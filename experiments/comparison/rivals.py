"""What users would pick instead, and our estimators as they come, on the paper's splits.

The rivals have an environment of their own (``experiments/requirements-rivals.txt``).

    python -m experiments.comparison.rivals --data DIR [--cluster local]

Protocol "paper": trained on the 2,000 rows, the validation part only stops or chooses.
Protocol "user": the 2,000 rows are all that a model sees; boosters find their number of trees on a
fifth of them and are then fitted on all, RealMLP keeps its own fifth for stopping, and our
estimators do what they do by default.
"""

from __future__ import annotations

import csv
import json
import logging
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sklearn.model_selection import train_test_split

from experiments.cells import experiment_arguments, missing_note, run_study
from experiments.comparison.rivals_picture import draw
from experiments.comparison.rivals_report import SPLITS, figures, write_report
from experiments.data import ALL, LOSS_COLUMNS, TWELVE, load_table, reported_loss
from experiments.frames import Part, fit_ours, make_frames, mean_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd

    from experiments.cells import Cell

MOST_TREES, PATIENCE, RATE = 3000, 100, 0.05
SEEDS = tuple(map(int, SPLITS))
OTHER_SELECTIONS = ("accurate", "provable")  # they need no training of their own
ON_ALL_SPLITS = ("LightGBM", "CatBoost", "RealMLP", "psilonnet")


def categories(frame: pd.DataFrame) -> list[str]:
    """Return the names of the category columns."""
    return list(frame.select_dtypes("category").columns)


class LightGBM:
    """LightGBM with early stopping."""

    def __init__(self, task: str, **settings: Any) -> None:
        lightgbm = import_module("lightgbm")
        self.stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
        self.make = lambda trees: kind(
            n_estimators=trees,
            learning_rate=RATE,
            n_jobs=1,
            verbose=-1,
            random_state=0,
            **settings,
        )

    def stopped(self, train: Part, valid: Part) -> tuple[Any, int]:
        """Fit until the loss on other rows stops falling."""
        model = self.make(MOST_TREES)
        model.fit(train.x, train.y, eval_X=valid.x, eval_y=valid.y, callbacks=[self.stop])
        return model, model.best_iteration_

    def full(self, train: Part, trees: int) -> Any:
        """Fit a given number of trees."""
        return self.make(trees).fit(train.x, train.y)


class XGBoost:
    """XGBoost with early stopping."""

    def __init__(self, task: str, **settings: Any) -> None:
        xgboost = import_module("xgboost")
        kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
        self.make = lambda trees, stop: kind(
            n_estimators=trees,
            learning_rate=RATE,
            early_stopping_rounds=stop,
            enable_categorical=True,
            n_jobs=1,
            random_state=0,
            **settings,
        )

    def stopped(self, train: Part, valid: Part) -> tuple[Any, int]:
        """Fit until the loss on other rows stops falling."""
        model = self.make(MOST_TREES, PATIENCE)
        model.fit(train.x, train.y, eval_set=[(valid.x, valid.y)], verbose=False)
        return model, model.best_iteration + 1

    def full(self, train: Part, trees: int) -> Any:
        """Fit a given number of trees."""
        return self.make(trees, None).fit(train.x, train.y)


class CatBoost:
    """CatBoost with early stopping; it chooses its own learning rate."""

    def __init__(self, task: str, **settings: Any) -> None:
        catboost = import_module("catboost")
        kind = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
        self.make = lambda trees, names: kind(
            iterations=trees,
            cat_features=names,
            thread_count=1,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
            **settings,
        )

    def stopped(self, train: Part, valid: Part) -> tuple[Any, int]:
        """Fit until the loss on other rows stops falling."""
        model = self.make(MOST_TREES, categories(train.x))
        model.fit(train.x, train.y, eval_set=(valid.x, valid.y), early_stopping_rounds=PATIENCE)
        return model, model.get_best_iteration() + 1

    def full(self, train: Part, trees: int) -> Any:
        """Fit a given number of trees."""
        return self.make(trees, categories(train.x)).fit(train.x, train.y)


def fit_booster(
    booster: Callable[[str], Any], task: str, parts: dict[str, Part], protocol: str
) -> Any:
    """Fit a booster under a protocol."""
    train = parts["train"]
    if protocol == "paper":
        return booster(task).stopped(train, parts["valid"])[0]
    labels = train.y if task == "classification" else None
    halves = train_test_split(train.x, train.y, test_size=0.2, random_state=0, stratify=labels)
    inner, held_out = Part(halves[0], halves[2]), Part(halves[1], halves[3])
    trees = booster(task).stopped(inner, held_out)[1]
    return booster(task).full(train, max(1, trees))


def fit_pytabkit(name: str, task: str, parts: dict[str, Part], protocol: str) -> Any:
    """Fit RealMLP or TabM of pytabkit with its default settings."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    interfaces = import_module("pytabkit.models.sklearn.sklearn_interfaces")
    ending = "Regressor" if task == "regression" else "Classifier"
    model = getattr(interfaces, f"{name}_{ending}")(device="cpu", random_state=0, n_threads=1)
    train, valid = parts["train"], parts["valid"]
    held_out = {} if protocol == "user" else {"X_val": valid.x, "y_val": valid.y}
    return model.fit(train.x, train.y, **held_out, cat_col_names=categories(train.x))


FITS: dict[str, Callable[..., Any]] = {
    "LightGBM": lambda *a: fit_booster(LightGBM, *a),
    "XGBoost": lambda *a: fit_booster(XGBoost, *a),
    "CatBoost": lambda *a: fit_booster(CatBoost, *a),
    "RealMLP": lambda *a: fit_pytabkit("RealMLP_TD", *a),
    "psilonnet": fit_ours,
    "TabM": lambda *a: fit_pytabkit("TabM_D", *a),
}


def cells() -> Iterator[Cell]:
    """Yield all cells: both protocols on one split, then other splits for the best models."""
    models = [model for model in FITS if model != "TabM"]
    plan = [(model, protocol, 0, ALL) for model in models for protocol in ("paper", "user")]
    plan += [("TabM", "paper", 0, TWELVE)]
    plan += [(model, "user", seed, ALL) for seed in SEEDS[1:] for model in ON_ALL_SPLITS]
    for model, protocol, seed, names in plan:
        for name in names:
            yield {"dataset": name, "model": model, "protocol": protocol, "seed": seed}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one rival on one table under one protocol."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"])
    begin = perf_counter()
    model = FITS[cell["model"]](table.task, parts, cell["protocol"])
    seconds = perf_counter() - begin
    losses = {f"{k}_loss": mean_loss(table.task, model, parts[k]) for k in ("valid", "test")}
    own = chosen_otherwise(table.task, model, parts) if cell["model"] == "psilonnet" else {}
    return {"task": table.task, **losses, "seconds": seconds, **own}


def chosen_otherwise(task: str, model: Any, parts: dict[str, Part]) -> Cell:
    """Return the bound of our default, and losses and bounds of the other selections."""
    others = {name: model.with_selection(name) for name in OTHER_SELECTIONS}
    return {"bound": model.lipschitz_bound_} | {
        name: {
            "bound": other.lipschitz_bound_,
            **{f"{k}_loss": mean_loss(task, other, parts[k]) for k in ("valid", "test")},
        }
        for name, other in others.items()
    }


def main() -> None:
    """Run the rivals, write ``rivals.csv`` and draw it."""
    arguments = experiment_arguments("Rivals on the same splits.", so_far=True)
    results = run_study("rivals", compute, cells(), arguments)
    if arguments.only:
        return
    arguments.results.mkdir(parents=True, exist_ok=True)
    path = arguments.results / "rivals.csv"
    finished = [(cell, results[cell]) for cell in cells() if cell in results]
    write_lines(path, [(cell, cell["model"], result) for cell, result in finished])
    chosen = path.with_name("rivals_selections.csv")
    write_lines(
        chosen,
        [
            (cell, word, {"task": result["task"], "seconds": result["seconds"], **result[word]})
            for cell, result in finished
            for word in OTHER_SELECTIONS
            if word in result
        ],
    )
    lines = [line for p in (path, path.with_name("tabular.csv")) for line in read_lines(p)]
    draw(lines, path.with_name("rivals.png"))
    found = figures(lines, read_lines(path.with_name("rivals_earlier.csv")), read_lines(chosen))
    note = missing_note(cells(), results)
    print(json.dumps(write_report(lines, found, arguments.results, note)))


def write_lines(path: Path, results: list[tuple[Cell, str, Cell]]) -> None:
    """Write a table of cells, each with the name of a model and its result."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*LOSS_COLUMNS, "bound"])
        for cell, model, result in results:
            task = result["task"]
            losses = [f"{reported_loss(task, result[f'{k}_loss']):.5f}" for k in ("valid", "test")]
            head = [cell["dataset"], task, model, "native", cell["protocol"], cell["seed"]]
            bound = f"{result['bound']:.4g}" if "bound" in result else ""
            writer.writerow([*head, "", *losses, "", "", f"{result['seconds']:.1f}", bound])


def read_lines(path: Path) -> list[dict[str, str]]:
    """Return the lines of a table, if it is there: linear models, forests and P-Nets are in it."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
