"""Predict with a model file and NumPy: neither torch nor scikit-learn is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from psilonnet.deploy.model_file import (
    as_file_errors,
    check_file,
    read_labels,
    read_model_arrays,
    read_scales,
)
from psilonnet.deploy.net_arrays import read_parts
from psilonnet.deploy.predictor import NO_ROWS, Networks, class_numbers, finished, probabilities
from psilonnet.tables import TableEncoder, read_columns

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from psilonnet.deploy.net_arrays import PartArrays
    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]


class FilePredictor:
    """The predictions of a model file, as those of ``psilonnet.load(path)`` up to rounding.

    Both compute in float64, and sum in different orders: predictions differ by about 1e-13 of
    their size. Messages and checks of the file are those of the model.

    A table is a pandas, polars or Arrow table, or an array of shape (rows, columns). The columns of
    a frame are found by their names, and columns that the model does not know are ignored; those of
    an array are in the order of the model.

    Parameters
    ----------
    path : path

    Attributes
    ----------
    encoder_ : TableEncoder
    classes_ : ndarray, or None for a regressor
    quantiles : tuple of float
        Of several quantiles, those that are predicted.

    Raises
    ------
    ModelFileError
        If the file does not describe a valid model.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        manifest, arrays = read_model_arrays(path)
        with as_file_errors(path):
            self._read(manifest, arrays)

    def _read(self, manifest: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.encoder_ = TableEncoder.from_dict(manifest["encoder"])
        kind = manifest["kind"]
        check_file(kind in ("PSiLONClassifier", "PSiLONRegressor"), f"a model of kind {kind!r}")
        self.classes_: Array | None = None
        levels: tuple[float, ...] = ()
        self._is_log = False
        if kind == "PSiLONClassifier":
            self.classes_, temperature = read_labels(manifest["target"])
            outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
            self._center, self._scale = np.zeros(outputs), np.full(outputs, 1 / temperature)
        else:
            self._center, self._scale, levels, self._is_log = read_scales(manifest["target"])
        self.quantiles = levels if len(levels) > 1 else ()
        self._one_target = manifest["one_target"] is True
        numbers, outputs = self.encoder_.holds_numbers, len(self._scale)
        arrays = {k: v for k, v in arrays.items() if not k.startswith("errors.")}  # not of networks
        parts = read_parts(manifest["parts"], arrays, numbers=numbers, outputs=outputs)
        self._networks = _networks([own for part in parts for own in part.summands()])

    def _outputs(self, table: Any) -> Array:
        """Return the logits or the predicted numbers of a table, of shape (rows, outputs)."""
        columns = self._columns(table)
        encoded = self.encoder_.encode(columns)
        self.encoder_.warn_far_outside(columns)
        numbers = self._center + self._networks(encoded) * self._scale
        return finished(numbers, is_log=self._is_log, is_sorted=bool(self.quantiles))

    def _columns(self, table: Any) -> Sequence[Column]:
        """Return the columns of a table in the order of the model."""
        is_array = isinstance(table, np.ndarray) and table.ndim == 2
        if not (is_array or nw.dependencies.is_into_dataframe(table)):
            raise TypeError(
                "A table must be a pandas, polars or Arrow table, or an array of shape (rows, "
                f"columns). Got {type(table).__name__}: convert it first."
            )
        if len(table) == 0:
            raise ValueError(NO_ROWS)
        names = self.encoder_.names
        if is_array:
            if table.shape[1] != len(names):
                raise ValueError(
                    f"A table without names must have the {len(names)} columns of the model, in "
                    f"its order. Got {table.shape[1]}."
                )
            return read_columns(table)
        frame = nw.from_native(table, eager_only=True)
        known = {str(name): place for place, name in enumerate(frame.columns)}
        if missing := [name for name in names if name not in known]:
            raise ValueError(
                f"The table must have all columns of the model. Missing: {missing}. It has "
                f"{list(known)}."
            )
        return read_columns(frame[:, [known[name] for name in names]].to_native())

    def predict(self, table: Any) -> Array:
        """Return the most probable class of each row, or the predicted numbers."""
        outputs = self._outputs(table)
        if self.classes_ is not None:
            return np.asarray(self.classes_[class_numbers(outputs)])
        return outputs[:, 0] if self._one_target else outputs

    def predict_proba(self, table: Any) -> Array:
        """Return the probabilities of the classes, of shape (rows, classes)."""
        if self.classes_ is None:
            raise ValueError("Only a classifier has probabilities. This model is a regressor.")
        return probabilities(self._outputs(table))


def _networks(parts: list[PartArrays]) -> Networks:
    """Return the networks as the exported predictor computes them, each part with its own view."""
    arrays: dict[str, Array] = {}
    facts = []
    for p, part in enumerate(parts):
        bends = part.bend != "identity"
        own = {"inputs": part.inputs, "bent": part.bent, "center": part.center, "scale": part.scale}
        arrays |= {f"view.{p}.{name}": array for name, array in own.items()}
        arrays[f"{p}.inputs"] = np.arange(len(part.inputs)) if bends else part.inputs
        for k, layer in enumerate(part.layers):
            members, n_out = layer.bias.shape
            arrays[f"{p}.{k}"] = layer.weight.reshape(members * n_out, -1)
            arrays[f"{p}.{k}.bias"] = layer.bias
            if layer.edges is not None:
                arrays[f"{p}.{k}.edges"] = layer.edges
        splits = [layer.split for layer in part.layers]
        facts.append({"view": p, "splits": splits, "weight": part.weight.tolist()})
    return Networks([part.bend for part in parts], facts, arrays)
