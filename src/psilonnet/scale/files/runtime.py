"""A fitted model as what a worker is sent: bytes that NumPy, or ONNX Runtime, reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.deploy import Predictor, class_numbers, probabilities, read_export
from psilonnet.tables import TableEncoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psilonnet.deploy import Notes

CALL_ROWS = 2048  # rows of one call: what a layer gives them stays in the cache of a core


@dataclass(frozen=True)
class ExportedModel:
    """An exported model in memory.

    Attributes
    ----------
    manifest : str
        The content of ``manifest.json``.
    weights : bytes
        The content of ``weights.npz``.
    onnx : bytes or None
        The model as an ONNX file, if ONNX Runtime is to run it.
    digest : str
        The same for the same model, whoever has exported it.
    """

    manifest: str = field(repr=False)
    weights: bytes = field(repr=False)
    onnx: bytes | None = field(repr=False)
    digest: str

    @property
    def columns(self) -> dict[str, str | None]:
        """The kind of each column, as in ``tables.Column``; None if it may hold anything.

        So may a column that had no two values in fit. An ONNX file names a type for it, though.
        """
        encoder = TableEncoder.from_dict(json.loads(self.manifest)["encoder"])
        typed = [code.width > 0 or self.onnx is not None for code in encoder.codes]
        columns = zip(encoder.names, encoder.kinds, typed, strict=True)
        return {name: kind if is_typed else None for name, kind, is_typed in columns}

    @property
    def output_fields(self) -> list[tuple[str, Any]]:
        """The names and Arrow types of what is predicted."""
        pa = require("pyarrow", "parquet")
        manifest = json.loads(self.manifest)
        classes = manifest["target"].get("classes")
        if classes is not None:
            shares = [(f"probability of {label}", pa.float64()) for label in classes]
            return [("prediction", pa.array(classes).type), *shares]
        if manifest["one_target"]:
            return [("prediction", pa.float64())]
        target = manifest["target"]
        levels, outputs = target.get("levels", []), len(target["center"])
        if len(levels) > 1:
            return [(f"quantile {level:g}", pa.float64()) for level in levels]
        return [(f"prediction {k}", pa.float64()) for k in range(outputs)]


def export_model(model: Any, runtime: str) -> ExportedModel:
    """Return an estimator, a model file or an exported folder as bytes."""
    if runtime not in ("numpy", "onnx"):
        raise ValueError(f"The 'runtime' must be 'numpy' or 'onnx'. Got {runtime!r} instead.")
    with TemporaryDirectory() as temporary:
        if isinstance(model, (str, os.PathLike)) and Path(model).is_dir():
            if runtime == "onnx":
                raise ValueError(
                    "An exported NumPy folder runs with runtime='numpy' only. "
                    f"Got the folder {str(model)!r}: give the model file for runtime='onnx'."
                )
            return _read_export(Path(model), None)
        estimator = _estimator(model)
        estimator.export_numpy(temporary)
        if runtime == "numpy":
            return _read_export(Path(temporary), None)
        require("onnxruntime", "onnx")
        path = Path(temporary) / "model.onnx"
        estimator.export_onnx(path)
        return _read_export(Path(temporary), path.read_bytes())


def _estimator(model: Any) -> Any:
    if isinstance(model, (str, os.PathLike)):
        # Here, because a worker that predicts needs neither torch nor scikit-learn.
        from psilonnet.estimators import load_model  # noqa: PLC0415

        return load_model(model)
    if not hasattr(model, "export_numpy"):
        raise TypeError(
            "The 'model' must be a fitted psilonnet estimator, the path of a model file, or a "
            f"folder written by export_numpy. Got {type(model).__name__} instead."
        )
    return model


def _read_export(folder: Path, onnx: bytes | None) -> ExportedModel:
    Predictor(folder)  # says what is wrong with a folder that is not an export
    manifest, weights = read_export(folder)
    # Of the content, not of the bytes: these depend on the version and on the compression.
    facts = {k: v for k, v in manifest.items() if k not in ("psilonnet", "weights")}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    with np.load(io.BytesIO(weights), allow_pickle=False) as arrays:
        for name in sorted(arrays.files):
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    digest.update(b"numpy" if onnx is None else b"onnx")
    return ExportedModel(json.dumps(manifest), weights, onnx, digest.hexdigest()[:32])


@lru_cache(maxsize=1)  # a worker predicts many blocks with one model
def open_model(exported: ExportedModel) -> NumpyRuntime | OnnxRuntime:
    """Return an exported model, ready to predict."""
    return NumpyRuntime(exported) if exported.onnx is None else OnnxRuntime(exported)


class NumpyRuntime:
    """Predicts Arrow tables in float64: the function that certificates are about."""

    def __init__(self, exported: ExportedModel) -> None:
        with TemporaryDirectory() as temporary:
            (Path(temporary) / "manifest.json").write_text(exported.manifest, encoding="utf-8")
            (Path(temporary) / "weights.npz").write_bytes(exported.weights)
            self.predictor = Predictor(temporary)

    def predict(self, table: Any, notes: Notes) -> list[Any]:
        """Return the columns that are predicted, in the order of ``output_fields``."""
        columns = {name: _as_numpy(table[name]) for name in self.predictor.names}
        parts = [
            self.predictor.outputs({name: c[rows] for name, c in columns.items()}, notes)
            for rows in _calls(len(table))
        ]
        outputs = np.concatenate(parts)
        if self.predictor.classes is None:
            return list(outputs.T)
        labels = require("pyarrow", "parquet").array(self.predictor.classes)
        return [labels.take(class_numbers(outputs)), *probabilities(outputs).T]


class OnnxRuntime:
    """Predicts Arrow tables in float32, on one core."""

    def __init__(self, exported: ExportedModel) -> None:
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = runtime.InferenceSession(
            exported.onnx, options, providers=["CPUExecutionProvider"]
        )
        self.names = list(exported.columns)

    def predict(self, table: Any, notes: Notes) -> list[Any]:
        """Return the columns that are predicted; the file does not know what training rows were."""
        from psilonnet.deploy import onnx_inputs  # noqa: PLC0415  # it loads torch

        inputs = onnx_inputs(table.select(self.names), self.session)
        calls = [
            self.session.run(None, {name: cells[rows] for name, cells in inputs.items()})
            for rows in _calls(len(table))
        ]
        first, *shares = (np.concatenate(parts) for parts in zip(*calls, strict=True))
        return [first, *shares[0].T] if shares else list(np.atleast_2d(first.T))


def _calls(rows: int) -> Iterator[slice]:
    return (slice(start, start + CALL_ROWS) for start in range(0, rows, CALL_ROWS))


def _as_numpy(column: Any) -> Any:
    """Return an Arrow column as the predictor reads it: decimals as floats, levels as words."""
    pa = require("pyarrow", "parquet")
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_numpy()
