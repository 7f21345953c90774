"""From the outputs of a network to labels and probabilities, or to numbers, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.deploy.predictor import LARGEST_LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.deploy.onnx.graph import GraphWriter

Array = np.ndarray[Any, Any]
LABEL_TYPES: dict[type, Any] = {str: object, bool: bool, int: np.int64, float: np.float64}


@dataclass(frozen=True)
class Outcome:
    """What becomes of the outputs of a network: ``outputs * scale + center``, and of that.

    Attributes
    ----------
    scale : ndarray of shape (outputs,)
    center : ndarray of shape (outputs,), or None for classes
    classes : ndarray of labels, or None for numbers
    flat : bool
        Whether one number per row has shape (rows,) instead of (rows, 1).
    is_sorted : bool
        Whether the numbers of a row are quantiles, and are sorted.
    is_log : bool
        Whether the numbers are logarithms of what is predicted.
    """

    scale: Array
    center: Array | None = None
    classes: Array | None = None
    flat: bool = False
    is_sorted: bool = False
    is_log: bool = False

    def write(self, graph: GraphWriter, raw: str, taken: Sequence[str]) -> list[Any]:
        """Write the outcome into a graph, and return the graph's outputs."""
        double = graph.onnx.TensorProto.DOUBLE
        outputs = graph.add("Cast", raw, to=double)
        if self.classes is not None:
            return self._write_classes(graph, outputs, self.classes, taken)
        scaled = graph.add("Mul", outputs, graph.constant(self.scale))
        name = _free("prediction", taken)
        axes = [graph.constant(np.array([1]))] if self.flat else []
        moved = graph.add("Add", scaled, graph.constant(self.center))
        predicted = self._write_numbers(graph, moved)
        graph.add("Squeeze" if self.flat else "Identity", predicted, *axes, name=name)
        shape = ["rows"] if self.flat else ["rows", len(self.scale)]
        return [graph.onnx.helper.make_tensor_value_info(name, double, shape)]

    def _write_numbers(self, graph: GraphWriter, numbers: str) -> str:
        if self.is_log:
            return graph.add("Exp", graph.add("Min", numbers, graph.constant(LARGEST_LOG)))
        if not self.is_sorted:
            return numbers
        count = graph.constant(np.array([len(self.scale)]))
        return graph.add("TopK", numbers, count, unused=1, axis=1, largest=0)

    def _write_classes(
        self, graph: GraphWriter, outputs: str, classes: Array, taken: Sequence[str]
    ) -> list[Any]:
        # The first of two classes has the logit 0.
        scale = [0.0, *self.scale] if len(classes) == 2 else self.scale
        logits = graph.add("Mul", outputs, graph.constant(scale))
        label, probabilities = _free("label", taken), _free("probabilities", taken)
        labels = graph.constant(_plain_labels(classes))
        kind = graph.constants[-1].data_type
        number = graph.add("ArgMax", logits, axis=1, keepdims=0)
        graph.add("Gather", labels, number, axis=0, name=label)
        graph.add("Softmax", logits, axis=1, name=probabilities)
        double, info = graph.onnx.TensorProto.DOUBLE, graph.onnx.helper.make_tensor_value_info
        return [
            info(label, kind, ["rows"]),
            info(probabilities, double, ["rows", len(classes)]),
        ]


def _plain_labels(classes: Array) -> Array:
    """Return labels as an array of a type that ONNX has: words, bool, int64 or float64."""
    labels = [v.item() if isinstance(v, np.generic) else v for v in classes.tolist()]
    kinds = {type(label) for label in labels}
    fit = len(kinds) == 1 and kinds <= LABEL_TYPES.keys()
    if not fit or (kinds == {int} and not -(2**63) <= min(labels) <= max(labels) < 2**63):
        said = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(
            "The labels of an ONNX file must all be words, or booleans, or whole numbers of 64 "
            f"bits, or floats. Got {said}, such as {labels[-1]!r}: fit on labels of one such type."
        )
    return np.array(labels, dtype=LABEL_TYPES[kinds.pop()])


def _free(name: str, taken: Sequence[str]) -> str:
    """Return a name for an output that no column has."""
    while name in taken:
        name += "_"
    return name
