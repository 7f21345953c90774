"""Tables as frames, which estimators read: parts of a split, our estimator on them, its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import log_loss

from experiments.data import scale_target, split_rows
from psilonnet import PSiLONClassifier, PSiLONRegressor

if TYPE_CHECKING:
    import pandas as pd

    from experiments.data import Table


@dataclass(frozen=True)
class Part:
    """Rows of a table as a frame, with the target scaled."""

    x: pd.DataFrame
    y: np.ndarray


def make_frames(
    table: Table, seed: int, *, n_train: int = 2000, use: int | None = None
) -> dict[str, Part]:
    """Split a table as for our own models; categories stay categories.

    Of the rows to train on the first are used, if not all; all of them scale the target, so that
    losses after few rows and after many have one unit.
    """
    split = split_rows(len(table.y), seed=seed, n_train=n_train)
    train = split.train[:use]
    y = scale_target(table, split.train)
    rows = {"train": train, "valid": split.valid, "test": split.test}
    # LightGBM refuses some of the tables' own names.
    x = table.x.set_axis([f"x{k}" for k in range(table.x.shape[1])], axis=1)
    return {k: Part(x.iloc[r].reset_index(drop=True), y[r]) for k, r in rows.items()}


def fit_ours(task: str, parts: dict[str, Part], protocol: str, **settings: Any) -> Any:
    """Fit our estimator, with its defaults if no settings are given."""
    kind = PSiLONRegressor if task == "regression" else PSiLONClassifier
    train, valid = parts["train"], parts["valid"]
    given = None if protocol == "user" else (valid.x, valid.y)
    model = kind(random_state=0, verbose=False, **settings)
    return model.fit(train.x, train.y, validation_data=given)


def mean_loss(task: str, model: Any, part: Part) -> float:
    """Return the mean squared error or the cross-entropy."""
    if task == "regression":
        return float(np.mean((np.asarray(model.predict(part.x)).ravel() - part.y) ** 2))
    return float(log_loss(part.y, model.predict_proba(part.x)))
