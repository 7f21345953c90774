"""Many models: what a model per group costs, and whether it costs the same for many groups.

Groups of 150 rows are cut from real tables (their first ten columns of numbers), the tables in
turn, and all groups go to one call of fit_many in this process, on one core. The estimator is
small, and the same everywhere: one design, width 64, depth 2, 300 steps, a fixed strength, five
folds. Costs are seconds of the processor's time, files included. The plain loop fits and saves the
same estimator group by group; LightGBM, where it is installed, has 100 trees.

    python -m benchmarks.scale --data DIR [--quick | --tiny]

Without --data, the groups are drawn from scikit-learn's diabetes table.
"""

import argparse
import json
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import process_time
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from benchmarks.figures import print_figures
from benchmarks.predict_files import FULL, QUICK, prediction_figures
from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many

ROWS, COLUMNS = 150, 10
TABLES = ("house_sales", "elevators", "superconduct", "house_16h", "ailerons", "pol", "cpu_act",
          "miami_housing_2016", "allstate_claims_severity", "wine_quality")  # fmt: skip


def load(name: str, data: Path | None) -> pd.DataFrame:
    """Return ten columns of numbers and the target y of a table."""
    if data is None:
        x, y = load_diabetes(return_X_y=True)
        frame = pd.DataFrame(np.column_stack([x, y]))
    else:
        entries = {
            entry["name"]: entry for entry in json.loads((data / "datasets.json").read_text())
        }
        frame = pd.read_parquet(data / entries[name]["file"])
    numbers = frame.iloc[:, :-1].select_dtypes("number").iloc[:, :COLUMNS].astype(float)
    columns = {f"x{k}": numbers.iloc[:, k].to_numpy() for k in range(COLUMNS)}
    return pd.DataFrame({**columns, "y": frame.iloc[:, -1].to_numpy(float)})


def make_groups(count: int, data: Path | None) -> list[pd.DataFrame]:
    """Return groups of rows, from the tables in turn; a small table is dealt out again."""
    rng = np.random.default_rng(0)
    tables = [load(name, data) for name in (TABLES if data else ("diabetes",))]
    left = [np.empty(0, dtype=int) for _ in tables]
    groups = []
    for number in range(count):
        k = number % len(tables)
        if len(left[k]) < ROWS:
            left[k] = rng.permutation(len(tables[k]))
        taken, left[k] = left[k][:ROWS], left[k][ROWS:]
        groups.append(tables[k].iloc[taken].assign(group=number))
    return groups


def fit_grouped(groups: list[pd.DataFrame], estimator: PSiLONRegressor, folder: Path) -> None:
    table = pd.concat(groups)
    index = fit_many(table, by="group", target="y", estimator=estimator, out=folder, progress=False)
    assert pd.read_parquet(index).error.isna().all()


def fit_one_by_one(groups: list[pd.DataFrame], estimator: PSiLONRegressor, folder: Path) -> None:
    folder.mkdir()
    for number, group in enumerate(groups):
        model = clone(estimator).fit(group.drop(columns=["y", "group"]), group.y.to_numpy())
        model.save(folder / f"{number}.psilon")


def fit_lightgbm(groups: list[pd.DataFrame], _: PSiLONRegressor, folder: Path) -> None:
    booster = import_module("lightgbm").LGBMRegressor
    folder.mkdir()
    for number, group in enumerate(groups):
        model = booster(n_estimators=100, n_jobs=1, verbose=-1)
        model.fit(group.drop(columns=["y", "group"]), group.y)
        model.booster_.save_model(folder / f"{number}.txt")


def cost(
    fit: Callable[[list[pd.DataFrame], PSiLONRegressor, Path], None],
    groups: list[pd.DataFrame],
    estimator: PSiLONRegressor,
) -> float:
    """Return the seconds of processor time per model."""
    with TemporaryDirectory() as folder:
        start = process_time()
        fit(groups, estimator, Path(folder) / "models")
        return (process_time() - start) / len(groups)


class Size(NamedTuple):
    """How many groups are fitted in one call, fewer of them and one by one; and rows to score."""

    many: int
    few: int
    alone: int
    steps: int
    rows: int


SIZES = {
    "full": Size(1000, 50, 40, steps=300, rows=FULL),
    "quick": Size(80, 20, 4, steps=60, rows=QUICK),
    "tiny": Size(4, 2, 1, steps=2, rows=2000),
}


def many_figures(data: Path | None, size: Size) -> dict[str, float]:
    """Fit groups in all ways, print the costs and return the figures."""
    many, few, alone, steps, _ = size
    estimator = PSiLONRegressor(
        designs=[Design()],
        width=64,
        depth=2,
        max_steps=steps,
        reg_strength=5e-3,
        random_state=0,
        verbose=False,
    )
    groups = make_groups(many, data)
    cost(fit_one_by_one, groups[:1], estimator)  # the first fit of a process is slow
    # The few before and after the many, so that a change of the machine's pace evens out.
    before = cost(fit_grouped, groups[:few], estimator)
    seconds = {"fit_many": cost(fit_grouped, groups, estimator)}
    after = cost(fit_grouped, groups[-few:], estimator)
    seconds["plain loop"] = cost(fit_one_by_one, groups[:alone], estimator)
    if find_spec("lightgbm"):
        seconds["LightGBM"] = cost(fit_lightgbm, groups[:alone], estimator)
    print(f"{many} groups of {ROWS} rows, {COLUMNS} columns, {steps} steps; {few} groups cost "
          f"{mean([before, after]):.3f} s each in fit_many")  # fmt: skip
    print(f"{'':<12}{'s/model':<10}{'models per core-hour':<22}")
    for name, one in seconds.items():
        print(f"{name:<12}{one:<10.3f}{3600 / one:<22.0f}")
    return {
        "models_per_core_hour": 3600 / seconds["fit_many"],
        "cost_flatness": seconds["fit_many"] / mean([before, after]),
        **{f"{name.replace(' ', '_')}_models_per_core_hour": 3600 / one
           for name, one in seconds.items() if name != "fit_many"},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with datasets.json")
    parser.add_argument("--quick", action="store_true", help="few groups, few steps")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    size = SIZES["tiny" if given.tiny else "quick" if given.quick else "full"]
    torch.set_num_threads(1)
    print_figures(many_figures(given.data, size) | prediction_figures(size.rows))


if __name__ == "__main__":
    main()
