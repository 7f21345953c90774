"""The labels of classes, as users hand them over."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from psilonnet.estimators.parameters import is_real, is_whole
from psilonnet.tables.columns import missing_cells

Array = np.ndarray[Any, Any]


def check_labels(y: Any) -> Array:
    """Return labels as an array of booleans, numbers or words; none may be missing."""
    y = column_or_1d(y.to_numpy() if hasattr(y, "to_numpy") else y, warn=True)
    if y.dtype == object:
        if missing_cells(y).any():
            raise ValueError(
                "Labels must not be missing: y contains NaN or None. Drop these rows, or make "
                "missing labels a class of their own."
            )
        y = _of_one_type(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            "Labels must not be missing or infinite: Input y contains NaN or infinity. Drop these "
            "rows."
        )
    check_classification_targets(y)
    strange = [v for v in np.unique(y).tolist() if not isinstance(v, (str, bool, int, float))]
    if strange or y.dtype.kind in "mM":
        raise ValueError(
            "Labels must be words, numbers or booleans. Got "
            f"{(strange or y.tolist())[0]!r}: turn them into words."
        )
    return np.asarray(y)


def _of_one_type(labels: Array) -> Array:
    """Return labels that are Python objects as an array of booleans, numbers or words."""
    types = {type(label) for label in labels}
    if types <= {bool, np.bool_}:
        return labels.astype(bool)
    if all(is_whole(label) for label in labels):
        return labels.astype(np.int64)
    if all(is_real(label) for label in labels):
        return labels.astype(float)
    if str in types and len(types) > 1:
        raise ValueError(
            "Labels must be of one type: words, numbers or booleans. Got "
            f"{sorted(t.__name__ for t in types)}: turn all of them into words."
        )
    return labels
