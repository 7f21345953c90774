"""The paper's baselines (Section 4.1): regularised linear models and random forests."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from psilonnet.training import Rows

LEAVES = (4, 8, 12, 16, 20, 30, 40, 50, 75, 100, 150, 200)
L2_STRENGTHS = tuple(float(f"{v:.3g}") for v in np.logspace(-3, 5, 17))  # the paper names no grid
N_TREES = 1000


def linear_grid(table: Table, parts: Parts) -> Cell:
    """Fit L2-regularised linear or logistic regression at all strengths."""

    def make(strength: float) -> Any:
        if table.task == "regression":
            return Ridge(alpha=strength)
        return LogisticRegression(C=1 / strength, max_iter=5000)

    return _grid(table, parts, L2_STRENGTHS, make)


def forest_grid(table: Table, parts: Parts, *, n_trees: int = N_TREES) -> Cell:
    """Fit random forests with all least leaf sizes of the paper."""
    forest = RandomForestRegressor if table.task == "regression" else RandomForestClassifier

    def make(leaf: int) -> Any:
        return forest(n_trees, min_samples_leaf=leaf, random_state=0, n_jobs=1)

    return _grid(table, parts, LEAVES, make)


def _grid(table: Table, parts: Parts, values: tuple[Any, ...], make: Callable[..., Any]) -> Cell:
    begin = perf_counter()
    cell: Cell = {"strengths": list(values), "valid_loss": [], "test_loss": [], "path_norm": []}
    for value in values:
        model = make(value).fit(parts.train.x.numpy(), parts.train.y.numpy().ravel())
        cell["valid_loss"].append(mean_loss(table, model, parts.valid))
        cell["test_loss"].append(mean_loss(table, model, parts.test))
        if hasattr(model, "coef_"):  # the Lipschitz constant of a linear map, exactly
            cell["path_norm"].append(float(np.abs(model.coef_).sum()))
    return {**cell, "seconds": perf_counter() - begin}


def mean_loss(table: Table, model: Any, rows: Rows) -> float:
    """Return the mean squared error or the cross-entropy of a fitted model."""
    x, y = rows.x.numpy(), rows.y.numpy().ravel()
    if table.task == "regression":
        return float(mean_squared_error(y, model.predict(x)))
    return float(log_loss(y, model.predict_proba(x)))
