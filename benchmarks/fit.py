"""What a fit with the defaults costs: 2,000 rows, 20 columns, the choice of strengths included.

Beside it, where they are installed, RealMLP and CatBoost with their defaults. Seconds of the
processor's time on one thread, fits in turn, medians.

    python -m benchmarks.fit [--quick | --tiny]
"""

import argparse
import logging
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_classification

from benchmarks.figures import print_figures
from psilonnet import PSiLONClassifier

ROWS, COLUMNS = 2000, 20


def fit_psilonnet(x: np.ndarray, y: np.ndarray, *, quick: bool) -> Any:
    steps = 20 if quick else "auto"
    return PSiLONClassifier(max_steps=steps, random_state=0, verbose=False).fit(x, y)


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


PEERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "RealMLP": ("pytabkit", fit_realmlp),
    "CatBoost": ("catboost", fit_catboost),
}


def main() -> None:
    """Fit all in turn and print the seconds of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few steps, one round")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    quick = given.quick or given.tiny
    torch.set_num_threads(1)
    rows = 200 if given.tiny else ROWS
    x, y = make_classification(rows, COLUMNS, n_informative=10, flip_y=0.1, random_state=0)
    fits = {"psilonnet": fit_psilonnet}
    fits |= {name: fit for name, (package, fit) in PEERS.items() if find_spec(package)}
    seconds: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(1 if quick else 3):
        for name, fit in fits.items():
            begin = process_time()
            fit(x, y, quick=quick)
            seconds[name].append(process_time() - begin)
    figures = {f"{name}_seconds": median(times) for name, times in seconds.items()}
    if "RealMLP" in fits:
        figures["over_realmlp"] = figures["psilonnet_seconds"] / figures["RealMLP_seconds"]
    print_figures(figures)


if __name__ == "__main__":
    main()
