"""Tables as the inputs of an ONNX session."""

from __future__ import annotations

import json
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
    notes = session.get_modelmeta().custom_metadata_map
    kinds, taken = (
        json.loads(notes.get(*note)) for note in (("kinds", "{}"), ("empty_words", "[]"))
    )
    inputs = {}
    for wanted in session.get_inputs():
        if wanted.name not in columns:
            raise ValueError(
                "The table must have every column of the model. "
                f"Column {wanted.name!r} is missing among {sorted(columns)}."
            )
        column, words = columns[wanted.name], wanted.type == "tensor(string)"
        is_words, kind = column.kind == "category", kinds.get(wanted.name)
        values = column.values
        if column.is_empty:  # nothing tells the kind
            values = np.full(len(values), None if words else np.nan)
        elif words != is_words:
            raise ValueError(
                f"Column {wanted.name!r} must hold the same kind of values as in fit. The model "
                f"takes {wanted.type}, and the column holds {'words' if is_words else 'numbers'}: "
                "convert it first."
            )
        elif kind not in (None, column.kind):  # times are float64 as well
            raise ValueError(
                f"Column {wanted.name!r} must hold the same kind of values as in fit. It held kind "
                f"{kind!r}, and holds {column.kind!r} now: convert it first."
            )
        if words:
            if wanted.name in taken and None in values:
                raise ValueError(
                    "The empty word stands for a missing cell in an ONNX file, unless it is a "
                    f"level of the model, as in column {wanted.name!r}. Row "
                    f"{values.tolist().index(None)} of it is missing: fill such cells, or predict "
                    "with the model itself."
                )
            values = np.array([MISSING if v is None else v for v in values], dtype=object)
        inputs[wanted.name] = values.reshape(-1, 1)
    return inputs
