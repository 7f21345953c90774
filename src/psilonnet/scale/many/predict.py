"""A table predicted with the right model for each row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._warnings import warn_user
from psilonnet.estimators import load_model
from psilonnet.scale.failures import warn_far, warn_unknown
from psilonnet.scale.many.folder import ModelFolder
from psilonnet.scale.many.groups import groups_of
from psilonnet.scale.many.keys import check_keys, key_column
from psilonnet.scale.many.table_rows import as_arrow
from psilonnet.tables import LossWarning, OutOfRangeWarning

if TYPE_CHECKING:
    import os
    from pathlib import Path

Array = np.ndarray[Any, Any]


def predict_many(table: Any, *, by: str, models: str | os.PathLike[str]) -> Array:
    """Predict each row of a table with the model of its group.

    Parameters
    ----------
    table : pandas, polars or Arrow table
        With the columns of the table that the models were fitted to; others are ignored.
    by : str
        The column whose values are the groups.
    models : path
        The folder that :func:`fit_many` has written.

    Returns
    -------
    ndarray of shape (rows,), or (rows, targets or quantiles) if the models predict several
        In the order of the rows. Rows whose group has no model, because it was not there or could
        not be fitted, and rows without a group are NaN for numbers and None for classes; a warning
        counts them.
    """
    folder = ModelFolder(models)
    settings = folder.settings()
    columns = settings["columns"]
    by = str(by)
    rows = as_arrow(table, [by, *columns])
    keys = key_column(rows, by)
    check_keys(keys, by, settings["keys"])
    groups = groups_of(keys)
    rows = rows.select(columns)
    numbers = settings["estimator"] == "PSiLONRegressor"
    predictions: Array = np.full(len(rows), np.nan) if numbers else np.full(len(rows), None)
    found = np.zeros(len(rows), dtype=bool)
    far, unknown = 0, []
    for group, name in enumerate(groups.names):
        path = folder.model(name)
        if path.exists():
            own = groups.rows(group)
            own_predictions, said = _predict(path, rows.take(own))
            if own_predictions.ndim > predictions.ndim:
                predictions = np.full((len(rows), own_predictions.shape[1]), np.nan)
            predictions[own] = own_predictions
            found[own] = True
            far += any(issubclass(one.category, OutOfRangeWarning) for one in said)
            unknown += [str(one.message) for one in said if issubclass(one.category, LossWarning)]
    _warn_missing(int((~found).sum()), len(rows))
    warn_far(far, "groups")
    warn_unknown(unknown, "groups")
    # Labels have their own type again if none is missing.
    return predictions if numbers or not found.all() else np.array(predictions.tolist())


def _predict(path: Path, rows: Any) -> tuple[Array, list[warnings.WarningMessage]]:
    """Return the predictions of a model, and what it warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return load_model(path).predict(rows), said


def _warn_missing(missing: int, total: int) -> None:
    if missing:
        warn_user(
            f"{missing} of {total} rows have no prediction: their group has no model, or they "
            "belong to none. The index of the models names the groups that failed.",
        )
