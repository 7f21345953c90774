"""Tables as the inputs of an ONNX session."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilonnet.deploy.onnx.table import MISSING
from psilonnet.tables import read_columns


def onnx_inputs(table: Any, session: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return a table as what an ONNX session of a full model takes.

    Parameters
    ----------
    table : pandas, polars or Arrow table, or ndarray of shape (rows, columns)
    session : onnxruntime.InferenceSession

    Returns
    -------
    dict from the name of a column to an ndarray of shape (rows, 1)
        Numbers, and times in days since 1970, in float64 with NaN for a missing cell; words and
        booleans as str with "" for a missing cell.
    """
    columns = {column.name: column for column in read_columns(table)}
    inputs = {}
    for wanted in session.get_inputs():
        if wanted.name not in columns:
            raise ValueError(
                "The table must have every column of the model. "
                f"Column {wanted.name!r} is missing among {sorted(columns)}."
            )
        words, values = wanted.type == "tensor(string)", columns[wanted.name].values
        is_words = columns[wanted.name].kind == "category"
        if words and not is_words and np.isnan(values).all():  # nothing tells the kind
            values, is_words = np.full(len(values), None), True
        if words != is_words:
            raise ValueError(
                f"Column {wanted.name!r} must hold the same kind of values as in fit. The model "
                f"takes {wanted.type}, and the column holds {'words' if is_words else 'numbers'}: "
                "convert it first."
            )
        if words:
            values = np.array([MISSING if v is None else v for v in values], dtype=object)
        inputs[wanted.name] = values.reshape(-1, 1)
    return inputs
