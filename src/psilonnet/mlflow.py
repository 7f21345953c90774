"""Models in MLflow: logged, loaded and served as ``pyfunc``, with no pickle on the way.

MLflow is not a dependency: ``pip install mlflow``. The logged folder holds the file of
``model.save``, and MLflow loads it with `_load_pyfunc` of this module.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet._version import __version__
from psilonnet.estimators import load_model

if TYPE_CHECKING:
    import pandas as pd

    from psilonnet.tables import TableEncoder

FILE, CARD = "model.psilon", "card.html"
OF_KINDS = {"number": "double", "time": "datetime", "duration": "double", "category": "string"}
OF_CLASSES = {"b": "boolean", "i": "long", "u": "long", "f": "double"}
BOOLS = ({"True"}, {"False"}, {"True", "False"})


def log_model(
    model: Any,
    name: str = "model",
    *,
    X: Any = None,  # noqa: N803  # scikit-learn's name
    y: Any = None,
    **options: Any,
) -> Any:
    """Log a fitted model and its report to MLflow, in the active run or a new one.

    The signature and the input example are made from the columns that the model was fitted to:
    numbers, and durations in days, are ``double``, times are ``datetime``, booleans ``boolean``,
    all other levels ``string``. A prediction is a table with the column ``prediction`` and, for a
    classifier, ``probability of ...`` for each class.

    Parameters
    ----------
    model : fitted estimator
    name : str
    X, y : table and targets, optional
        Rows that the model has not seen, for the report.
    **options
        Of ``mlflow.pyfunc.log_model``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    mlflow = require("mlflow.pyfunc", None)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "psilonnet"
        folder.mkdir()
        model.save(folder / FILE)
        model.report(folder / CARD, X, y, title=name)
        import_module("mlflow").log_artifact(str(folder / CARD))
        given = {
            "signature": _signature(model),
            "input_example": _example(model.encoder_),
            "pip_requirements": [f"psilonnet=={__version__}", "pandas"],
        }
        return mlflow.log_model(
            name=name, loader_module=__name__, data_path=str(folder), **{**given, **options}
        )


def _load_pyfunc(folder: str) -> _Served:
    """Return what MLflow serves; it calls this by name."""
    return _Served(load_model(Path(folder) / FILE))


class _Served:
    """A model whose predictions are tables."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, table: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        """Return predictions, and the probabilities of the classes."""
        pandas = import_module("pandas")
        encoder = self.model.encoder_
        for column, kind in zip(encoder.names, encoder.kinds, strict=True):
            if kind == "duration" and column in table and table[column].dtype.kind == "f":
                spans = pandas.to_timedelta(table[column], unit="D").dt.round("ms")
                table = table.assign(**{column: spans})
        columns = _prediction_names(self.model)
        table = table[list(encoder.names)]
        predicted = np.asarray(self.model.predict(table))
        if not hasattr(self.model, "classes_"):
            return pandas.DataFrame(predicted.reshape(len(predicted), -1), columns=columns)
        shares = pandas.DataFrame(self.model.predict_proba(table), columns=columns[1:])
        shares.insert(0, columns[0], predicted)
        return shares


def _prediction_names(model: Any) -> list[str]:
    """Return the columns of predictions."""
    if hasattr(model, "classes_"):
        return ["prediction", *(f"probability of {label}" for label in model.classes_.tolist())]
    count = model.target_.outputs
    return ["prediction"] if count == 1 else [f"prediction {k}" for k in range(count)]


def _signature(model: Any) -> Any:
    """Return what goes in and what comes out, as MLflow's signature."""
    types = import_module("mlflow.types")
    encoder = model.encoder_
    inputs = [
        types.ColSpec("boolean" if _is_bool(kind, code) else OF_KINDS[kind], name)
        for name, kind, code in zip(encoder.names, encoder.kinds, encoder.codes, strict=True)
    ]
    first, *others = _prediction_names(model)
    classes = getattr(model, "classes_", np.zeros(0))
    outputs = [types.ColSpec(OF_CLASSES.get(classes.dtype.kind, "string"), first)]
    outputs += [types.ColSpec("double", name) for name in others]
    signature = import_module("mlflow.models").ModelSignature
    return signature(types.Schema(inputs), types.Schema(outputs))


def _is_bool(kind: str, code: Any) -> bool:
    """Whether a column held booleans, none of them missing: then MLflow would take no column."""
    return kind == "category" and set(code.levels) in BOOLS and not code.has_missing


def _example(encoder: TableEncoder) -> pd.DataFrame:
    """Return a row in the middle of the training rows: means, and first levels."""
    pandas = import_module("pandas")
    cells: dict[str, list[Any]] = {}
    for name, kind, code in zip(encoder.names, encoder.kinds, encoder.codes, strict=True):
        if kind == "category":
            level = code.levels[0] if code.levels else None  # type: ignore[union-attr]
            cells[name] = [level == "True" if _is_bool(kind, code) else level]
        else:
            middle = code.center  # type: ignore[union-attr]
            at = pandas.Timestamp(0) + pandas.Timedelta(days=middle) if kind == "time" else middle
            cells[name] = [at]
    return pandas.DataFrame(cells)
