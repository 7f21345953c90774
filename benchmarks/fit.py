"""What a fit with the defaults costs: 2,000 rows, 20 columns, the choice of networks included.

Beside it, where they are installed, RealMLP, CatBoost and LightGBM with their defaults. Seconds of
the processor's time on one thread, fits in turn, ours with pruning among them, medians; then ours
once with 200 and 10,000 rows.

    python -m benchmarks.fit [--quick | --tiny]

With ``--other`` it fits with two versions of this library in turn instead: the one that runs it,
and the one that another Python has installed; five seeds, and the log loss on fresh rows of each.

    python -m benchmarks.fit --other OTHER_ENVIRONMENT/bin/python
"""

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from benchmarks.figures import print_figures
from psilonnet import PSiLONClassifier

ROWS, COLUMNS = 2000, 20
OTHER_ROWS = (200, 10_000)


def fit_psilonnet(x: np.ndarray, y: np.ndarray, *, quick: bool, prune: bool = False) -> Any:
    steps = 20 if quick else "auto"
    model = PSiLONClassifier(max_steps=steps, prune=prune, random_state=0, verbose=False)
    return model.fit(x, y)


def fit_realmlp(x: np.ndarray, y: np.ndarray, *, quick: bool) -> Any:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    kind = import_module("pytabkit.models.sklearn.sklearn_interfaces").RealMLP_TD_Classifier
    epochs = {"n_epochs": 2} if quick else {}
    return kind(device="cpu", random_state=0, n_threads=1, **epochs).fit(x, y)


def fit_catboost(x: np.ndarray, y: np.ndarray, *, quick: bool) -> Any:
    trees = {"iterations": 10} if quick else {}
    kind = import_module("catboost").CatBoostClassifier
    model = kind(thread_count=1, random_seed=0, verbose=False, allow_writing_files=False, **trees)
    return model.fit(x, y)


def fit_lightgbm(x: np.ndarray, y: np.ndarray, *, quick: bool) -> Any:
    trees = {"n_estimators": 10} if quick else {}
    kind = import_module("lightgbm").LGBMClassifier
    return kind(n_jobs=1, random_state=0, verbose=-1, **trees).fit(x, y)


PEERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "RealMLP": ("pytabkit", fit_realmlp),
    "CatBoost": ("catboost", fit_catboost),
    "LightGBM": ("lightgbm", fit_lightgbm),
}


def made_up(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of two classes."""
    x, y = make_classification(rows, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    return x, y


def seconds_of(fit: Callable[[], Any]) -> float:
    begin = process_time()
    fit()
    return process_time() - begin


def in_turn(rows: int, *, quick: bool) -> dict[str, float]:
    """Return the median seconds of each library."""
    x, y = made_up(rows)
    pruned = partial(fit_psilonnet, prune=True)
    fits: dict[str, Callable[..., Any]] = {"psilonnet": fit_psilonnet, "pruned": pruned}
    fits |= {name: fit for name, (package, fit) in PEERS.items() if find_spec(package)}
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(1 if quick else 3):
        for name, fit in fits.items():
            seconds[name].append(seconds_of(partial(fit, x, y, quick=quick)))
    figures = {f"{name}_seconds": median(times) for name, times in seconds.items()}
    ours = figures["psilonnet_seconds"]
    figures["pruned_over_unpruned"] = figures["pruned_seconds"] / ours
    return figures | {
        f"over_{name.lower()}": ours / figures[f"{name}_seconds"] for name in fits if name in PEERS
    }


def other_sizes(*, quick: bool) -> dict[str, float]:
    """Return the seconds of fits to fewer and more rows."""
    return {
        f"seconds_{rows}_rows": seconds_of(partial(fit_psilonnet, *made_up(rows), quick=quick))
        for rows in OTHER_ROWS
    }


def fit_once(seed: int, *, quick: bool) -> dict[str, float]:
    """Return the seconds of one fit, and the log loss on rows that it has not seen.

    With no parameters but those that all versions have.
    """
    x, y = make_classification(3 * ROWS, COLUMNS, n_informative=10, flip_y=0.1, random_state=seed)
    steps = 20 if quick else "auto"
    model = PSiLONClassifier(max_steps=steps, random_state=seed, verbose=False)
    begin = process_time()
    model.fit(x[:ROWS], y[:ROWS])
    seconds = process_time() - begin
    return {"seconds": seconds, "loss": log_loss(y[ROWS:], model.predict_proba(x[ROWS:]))}


def against(other: str, *, quick: bool) -> dict[str, float]:
    """Return how this version compares with that of another Python, fits in turn.

    PYTHONPATH may name the one that runs, and is not for the other.
    """
    results: dict[str, list[dict[str, float]]] = {sys.executable: [], other: []}
    for seed in range(1 if quick else 5):
        for python, found in results.items():
            size = ["--quick"] if quick else []
            command = [python, "-m", "benchmarks.fit", "--seed", str(seed), *size]
            own = {k: v for k, v in os.environ.items() if python != other or k != "PYTHONPATH"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
            found.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"seed {seed}: {found[-1]}  {python}", flush=True)
    ours, theirs = results.values()
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "seconds": median(own["seconds"] for own in ours),
        "other_seconds": median(own["seconds"] for own in theirs),
        "ratio_of_times": median(a["seconds"] / b["seconds"] for a, b in pairs),
        "ratio_of_losses": median(a["loss"] / b["loss"] for a, b in pairs),
        "worst_ratio_of_losses": max(a["loss"] / b["loss"] for a, b in pairs),
    }


def main() -> None:
    """Fit all in turn and print the seconds of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps, one round")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    parser.add_argument("--other", help="the Python of an environment with another version")
    parser.add_argument("--seed", type=int, help="fit once, as --other does")
    given = parser.parse_args()
    quick = given.quick or given.tiny
    torch.set_num_threads(1)
    if given.seed is not None:
        print_figures(fit_once(given.seed, quick=quick))
        return
    if given.other is not None:
        print_figures(against(given.other, quick=quick))
        return
    figures = in_turn(200 if given.tiny else ROWS, quick=quick)
    print_figures(figures if given.tiny else figures | other_sizes(quick=quick))


if __name__ == "__main__":
    main()
