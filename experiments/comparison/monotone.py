"""Monotone columns: boosters with the same constraints, and our estimators with and without them.

Protocol "user": a model sees 2,000 rows. Then one column of a real row at a time goes through its
range, and every step of the prediction against the direction is counted. The rivals have an
environment of their own (``experiments/requirements-rivals.txt``).

    python -m experiments.comparison.monotone --data DIR
"""

from __future__ import annotations

import json
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.comparison.rivals import (
    MOST_TREES,
    PATIENCE,
    RATE,
    CatBoost,
    LightGBM,
    XGBoost,
    fit_booster,
)
from experiments.data import Table, load_table, reported_loss
from experiments.frames import Part, fit_ours, make_frames, mean_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from experiments.cells import Cell

SEEDS = (0, 1, 2)
ROWS, STEPS = 200, 40  # of the search for steps against the direction
TOO_SMALL = 1e-6  # steps, in standard deviations of the predictions: rounding of float32
# Heloc: as the dictionary of the table states them for the probability of "bad", turned round,
# since here 1 is "good". MaxDelq2PublicRecLast12M and MaxDelqEver are left out: some of their codes
# have no order.
RISE, FALL = 1, -1
SIGNS: dict[str, dict[str, int]] = {
    "heloc": {
        "ExternalRiskEstimate": RISE,
        "MSinceOldestTradeOpen": RISE,
        "MSinceMostRecentTradeOpen": RISE,
        "AverageMInFile": RISE,
        "NumSatisfactoryTrades": RISE,
        "NumTrades60Ever2DerogPubRec": FALL,
        "NumTrades90Ever2DerogPubRec": FALL,
        "PercentTradesNeverDelq": RISE,
        "MSinceMostRecentDelq": RISE,
        "NumTradesOpeninLast12M": FALL,
        "MSinceMostRecentInqexcl7days": RISE,
        "NumInqLast6M": FALL,
        "NumInqLast6Mexcl7days": FALL,
        "NetFractionRevolvingBurden": FALL,
        "NetFractionInstallBurden": FALL,
        "NumBank2NatlTradesWHighUtilization": FALL,
    },
    "house_sales": {"sqft_living": RISE, "grade": RISE},
    "miami_housing_2016": {"TOT_LVG_AREA": RISE, "LND_SQFOOT": RISE, "SPEC_FEAT_VAL": RISE},
}
NOTHING = (-7, -8, -9)  # codes of heloc: no such event, nothing usable, no record


class HistGradientBoosting:
    """scikit-learn's boosting with early stopping."""

    def __init__(self, task: str, **settings: Any) -> None:
        kinds = {
            "regression": HistGradientBoostingRegressor,
            "classification": HistGradientBoostingClassifier,
        }
        self.make = partial(
            kinds[task],
            learning_rate=RATE,
            categorical_features="from_dtype",
            random_state=0,
            **settings,
        )

    def stopped(self, train: Part, valid: Part) -> tuple[Any, int]:
        """Fit until the loss on other rows stops falling."""
        model = self.make(max_iter=MOST_TREES, early_stopping=True, n_iter_no_change=PATIENCE)
        model.fit(train.x, train.y, X_val=valid.x, y_val=valid.y)
        return model, int(np.argmax(model.validation_score_))

    def full(self, train: Part, trees: int) -> Any:
        """Fit a given number of trees."""
        return self.make(max_iter=trees, early_stopping=False).fit(train.x, train.y)


BOOSTERS: dict[str, tuple[Callable[..., Any], str]] = {
    "CatBoost": (CatBoost, "monotone_constraints"),
    "LightGBM": (LightGBM, "monotone_constraints"),
    "XGBoost": (XGBoost, "monotone_constraints"),
    "scikit-learn": (HistGradientBoosting, "monotonic_cst"),
}
OURS, FREE = "psilonnet", "psilonnet, free"
MODELS = (*BOOSTERS, OURS, FREE)


def read_table(name: str, data: str) -> Table:
    """Return a table; codes that stand for nothing are missing cells."""
    table = load_table(name, data)
    if name != "heloc":
        return table
    x = table.x.astype(float)
    return Table(name, table.task, x.mask(x.isin(NOTHING)), table.y)


def fit(model: str, task: str, parts: dict[str, Part], signs: list[int]) -> Any:
    """Fit one of the models, with directions unless it is free."""
    if model in BOOSTERS:
        booster, word = BOOSTERS[model]
        given: Any = tuple(signs) if model == "XGBoost" else signs
        return fit_booster(partial(booster, **{word: given}), task, parts, "user")
    return fit_ours(task, parts, "user", **({"monotonic_cst": signs} if model == OURS else {}))


def steps_against(
    predict: Callable[[pd.DataFrame], Any], part: Part, signs: list[int]
) -> tuple[int, int, float]:
    """Return how many steps were tried, how many go against the direction, and the farthest one.

    Each constrained column of each row goes through its range in even steps, the rest stays.
    The farthest is in standard deviations of the predictions, 0 if there is none.
    """
    x = part.x.iloc[:ROWS]
    spread = float(np.std(predict(x)))
    tried, against, farthest = 0, 0, 0.0
    for k in np.flatnonzero(signs):
        name = x.columns[k]
        values = np.linspace(x[name].min(), x[name].max(), STEPS + 1)
        long = x.loc[x.index.repeat(len(values))].reset_index(drop=True)
        long[name] = np.tile(values, len(x))
        moves = np.diff(np.asarray(predict(long), dtype=float).reshape(len(x), -1), axis=1)
        down = np.maximum(-signs[k] * moves / spread, 0.0)
        tried, against = tried + down.size, against + int((down > TOO_SMALL).sum())
        farthest = max(farthest, float(down.max()))
    return tried, against, farthest


def cells() -> Iterator[Cell]:
    """Yield all cells, split by split."""
    for seed in SEEDS:
        for name in SIGNS:
            for model in MODELS:
                yield {"dataset": name, "model": model, "seed": seed}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one model to one split, and look for steps against the directions."""
    table = read_table(cell["dataset"], data)
    signs = [SIGNS[cell["dataset"]].get(name, 0) for name in table.x.columns]
    parts = make_frames(table, cell["seed"])
    begin = perf_counter()
    model = fit(cell["model"], table.task, parts, signs)
    seconds = perf_counter() - begin

    def predict(x: pd.DataFrame) -> Any:
        return model.predict(x) if table.task == "regression" else model.predict_proba(x)[:, 1]

    tried, against, farthest = steps_against(predict, parts["test"], signs)
    losses = {f"{k}_loss": mean_loss(table.task, model, parts[k]) for k in ("valid", "test")}
    found = {"steps": tried, "against": against, "farthest": farthest}
    return {"task": table.task, **losses, **found, "seconds": seconds, **_proven(model, signs)}


def _proven(model: Any, signs: list[int]) -> Cell:
    """Return the range of slopes in the directions, per standard deviation; only ours is proven."""
    if not hasattr(model, "feature_slopes_"):
        return {}
    scales = np.array([getattr(code, "scale", 0.0) for code in model.encoder_.codes])
    own = np.flatnonzero(signs)
    ends = (model.feature_slopes_ * scales[:, None])[own] * np.array(signs)[own, None]
    return {"least_slope": float(ends.min()), "largest_slope": float(ends.max())}


def main() -> None:
    """Run all cells and write ``monotone.csv``."""
    arguments = experiment_arguments("Boosters with the same directions, and ours.", so_far=True)
    results = run_study("monotone", compute, cells(), arguments)
    if arguments.only:
        return
    lines, losses = [], {}
    for cell in (cell for cell in cells() if cell in results):
        result = results[cell]
        task = result["task"]
        valid, test = (reported_loss(task, result[f"{k}_loss"]) for k in ("valid", "test"))
        losses[cell["dataset"], cell["model"], cell["seed"]] = test
        lines.append(
            {
                **cell,
                "task": task,
                "protocol": "user",
                "valid_loss": f"{valid:.5f}",
                "test_loss": f"{test:.5f}",
                "steps": result["steps"],
                "steps_against": result["against"],
                "farthest_against": f"{result['farthest']:.2g}",
                "least_slope": _shown(result.get("least_slope")),
                "largest_slope": _shown(result.get("largest_slope")),
                "seconds": f"{result['seconds']:.1f}",
            }
        )
    write_csv(lines, arguments.results / "monotone.csv")
    print(json.dumps(summary(losses)))


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"


def summary(losses: dict[tuple[str, str, int], float]) -> dict[str, dict[str, float]]:
    """Return the mean test loss of each model on each table of which all splits are there."""
    return {
        name: {
            model: round(float(np.mean([losses[name, model, seed] for seed in SEEDS])), 5)
            for model in MODELS
            if all((name, model, seed) in losses for seed in SEEDS)
        }
        for name in SIGNS
    }


if __name__ == "__main__":
    main()
