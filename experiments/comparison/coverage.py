"""How often intervals and sets hold the truth, how wide they are, and what errors of reading do.

Twenty splits of eight tables: 2,000 rows to fit, 1,000 to conformalize, 1,000 to count on. Our
networks are of one small configuration, so that all of it takes some core-hours. An attack moves
all numbers of a row within 0.02 or 0.05 standard deviations, so that the interval (the set) of what
is then read misses the truth; it looks at the network and at the truth.

Beside them, as they come: MAPIE around scikit-learn's gradient boosting (split conformal, and
conformalized quantile regression), on the same rows, and CatBoost's quantiles, which nothing
conformalizes. These have an environment of their own: ``pip install mapie catboost``, torch first.

    python -m experiments.comparison.coverage --data DIR
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import EIGHT, load_table
from experiments.frames import Part, fit_ours, make_frames
from psilonnet import Design
from psilonnet.certify import Box, Effort, attack
from psilonnet.tables import OutOfRangeWarning, read_columns

if TYPE_CHECKING:
    import pandas as pd

    from experiments.cells import Cell

Rows = tuple[np.ndarray, np.ndarray]

COVERAGE, SIZES, SPLITS, ROWS = 0.9, (0.02, 0.05), 20, 1000
SETTINGS: dict[str, Any] = {"designs": [Design()], "width": 64, "depth": 2, "max_steps": 400}
METHOD = "local"  # of the certificates: tighter ones take more time
EFFORT = Effort(climbs=2, steps=10, stops=0)
TREES, RATE = 100, 0.1  # of CatBoost
OURS, OUR_QUANTILES = "psilonnet", "psilonnet quantiles"
MAPIE, CQR, CATBOOST = "MAPIE split", "MAPIE quantiles", "CatBoost quantiles"
MODELS = (OURS, OUR_QUANTILES, MAPIE, CQR, CATBOOST)
ONLY_NUMBERS = (OUR_QUANTILES, CQR, CATBOOST)
LEVELS = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
FIGURES = (
    "score", "held_out_coverage", "held_out_width", "coverage", "width",
    *(f"{name}_{size}" for size in SIZES for name in ("attacked", "delta_coverage", "delta_width")),
)  # fmt: skip


@dataclass(frozen=True)
class Said:
    """Intervals or sets of some rows: whether they hold the truth, and how wide they are."""

    holds: np.ndarray
    width: np.ndarray

    @classmethod
    def interval(cls, ends: Any, y: np.ndarray) -> Said:
        """Return what intervals say."""
        low, high = np.sort(np.asarray(ends), axis=0)
        return cls((low <= y) & (y <= high), high - low)

    @classmethod
    def set(cls, members: np.ndarray, y: np.ndarray) -> Said:
        """Return what sets say."""
        return cls(members[np.arange(len(y)), y.astype(int)], members.sum(axis=1))

    @property
    def figures(self) -> tuple[float, float]:
        """The share of rows whose truth is held, and the mean width."""
        return float(self.holds.mean()), float(self.width.mean())


def said(model: Any, x: pd.DataFrame, y: np.ndarray, delta: float | None = None) -> Said:
    """Return the intervals or sets of our model."""
    if hasattr(model, "classes_"):
        return Said.set(model.predict_set(x, COVERAGE, delta=delta, method=METHOD), y)
    return Said.interval(model.predict_interval(x, COVERAGE, delta=delta, method=METHOD), y)


def attacked(model: Any, x: pd.DataFrame, y: np.ndarray, size: float) -> pd.DataFrame:
    """Return what is read in the table when the numbers of each row are off in the worst way."""
    encoder = model.encoder_
    encoded = torch.from_numpy(encoder.encode(read_columns(x)))
    numbers = torch.from_numpy(encoder.holds_numbers)
    radius = torch.where(numbers, size * (1 - 1e-6), 0.0).expand_as(encoded).double()
    if hasattr(model, "classes_"):
        away = np.where(y > 0, -1.0, 1.0)
    else:
        middle = model.predict(x).reshape(len(y), -1).mean(axis=1)
        away = np.where(middle >= y, 1.0, -1.0)
    direction = torch.from_numpy(away).reshape(-1, 1, 1).expand(-1, 1, model.net_.outputs)
    worst = attack(model.net_, encoded, Box.of(radius), direction, effort=EFFORT).points[:, 0]
    moved = (worst - encoded).numpy()
    read = x.copy()
    for k, (name, code) in enumerate(zip(encoder.names, encoder.codes, strict=True)):
        if getattr(code, "scale", 0) > 0:
            read[name] = x[name].to_numpy(float) + moved[:, encoder.places[k][0]] * code.scale
    return read


def measure_ours(name: str, task: str, parts: dict[str, Part], calm: Part, test: Part) -> Cell:
    """Fit our estimator, and count how often it is right about where the truth is."""
    own = {"loss": "quantile", "quantile": LEVELS} if name == OUR_QUANTILES else {}
    model = fit_ours(task, parts, "user", **SETTINGS, **own)
    found: Cell = {"score": model.score(test.x, test.y)}
    found["held_out_coverage"], found["held_out_width"] = said(model, test.x, test.y).figures
    model.conformalize(calm.x, calm.y)
    found["coverage"], found["width"] = said(model, test.x, test.y).figures
    for size in SIZES:
        read = attacked(model, test.x, test.y, size)
        found[f"attacked_{size}"] = said(model, read, test.y).figures[0]
        safe = said(model, read, test.y, size).figures
        found[f"delta_coverage_{size}"], found[f"delta_width_{size}"] = safe
    return found


def measure_rival(name: str, task: str, train: Rows, calm: Rows, test: Rows) -> Cell:
    """Fit another library's model, and count the same."""
    ensemble = import_module("sklearn.ensemble")
    if name == CATBOOST:
        levels = ",".join(f"{level:.3g}" for level in LEVELS)
        model = import_module("catboost").CatBoostRegressor(
            loss_function=f"MultiQuantile:alpha={levels}",
            iterations=TREES,
            learning_rate=RATE,
            thread_count=1,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
        )
        model.fit(*train)
        result = Said.interval(model.predict(test[0]).T, test[1])
    elif task == "classification":
        trees = ensemble.HistGradientBoostingClassifier(random_state=0)
        wrap = import_module("mapie.classification").SplitConformalClassifier
        model = wrap(trees, confidence_level=COVERAGE, prefit=False).fit(*train)
        members = model.conformalize(*calm).predict_set(test[0])[1][:, :, 0]
        result = Said.set(members, test[1])
    else:
        package = import_module("mapie.regression")
        if name == CQR:
            trees = ensemble.HistGradientBoostingRegressor(
                loss="quantile", quantile=0.5, random_state=0
            )
            model = package.ConformalizedQuantileRegressor(trees, confidence_level=COVERAGE)
        else:
            trees = ensemble.HistGradientBoostingRegressor(random_state=0)
            model = package.SplitConformalRegressor(trees, confidence_level=COVERAGE, prefit=False)
        model.fit(*train).conformalize(*calm)
        result = Said.interval(model.predict_interval(test[0])[1][:, :, 0].T, test[1])
    return dict(zip(("coverage", "width"), result.figures, strict=True))


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one model on one split of one table, and measure it."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"])
    calm, test = (Part(p.x[:ROWS], p.y[:ROWS]) for p in (parts["valid"], parts["test"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutOfRangeWarning)
        if cell["model"] in (OURS, OUR_QUANTILES):
            return measure_ours(cell["model"], table.task, parts, calm, test)
        own = (_as_numbers(part) for part in (parts["train"], calm, test))
        return measure_rival(cell["model"], table.task, *own)


def _as_numbers(part: Part) -> Rows:
    """Return a table as an array, with categories as codes."""
    x = part.x.copy()
    for name in x.select_dtypes("category"):
        x[name] = x[name].cat.codes
    return x.to_numpy(float), part.y


def all_cells(data: str) -> list[Cell]:
    """Return the cells, ours first, and split by split; quantiles are of numbers only."""
    tasks = {name: load_table(name, data).task for name in EIGHT}
    return [
        {"dataset": name, "seed": seed, "model": model}
        for model in MODELS
        for seed in range(SPLITS)
        for name in EIGHT
        if tasks[name] == "regression" or model not in ONLY_NUMBERS
    ]


def means_of(cells: list[Cell], results: Any) -> list[Cell]:
    """Return a line for each table and model: means over the splits."""
    lines = []
    for name in EIGHT:
        for model in MODELS:
            found = [results[c] for c in cells if (c["dataset"], c["model"]) == (name, model)]
            if found:
                means = {
                    f: round(float(np.mean([r[f] for r in found])), 4) if f in found[0] else ""
                    for f in FIGURES
                }
                lines.append({"dataset": name, "model": model, "splits": len(found), **means})
    return lines


def main() -> None:
    """Run all cells and write ``coverage.csv``."""
    arguments = experiment_arguments("Coverage of intervals and sets.")
    cells = all_cells(arguments.data)
    results = run_study("coverage", compute, cells, arguments)
    if arguments.only:
        return
    lines = means_of(cells, results)
    write_csv(lines, arguments.results / "coverage.csv")
    ours = [line for line in lines if line["model"] == OURS]
    figures = {
        f"{word}_{name}": end(line[name] for line in ours)
        for name in FIGURES
        if "coverage" in name or "attacked" in name
        for word, end in (("least", min), ("most", max))
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
