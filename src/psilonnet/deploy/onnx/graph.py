"""A small writer of ONNX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOMAINS = {"LabelEncoder": "ai.onnx.ml"}  # all other operators are in the default domain


class GraphWriter:
    """Nodes and constants, with names that no column of the table has.

    Parameters
    ----------
    taken : names of the graph's inputs
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self.onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.prefix = "psilonnet."
        while any(name.startswith(self.prefix) for name in taken):
            self.prefix += "."

    def _fresh(self, word: str) -> str:
        return f"{self.prefix}{word}.{len(self.nodes) + len(self.constants)}"

    def add(
        self,
        operator: str,
        *inputs: str,
        name: str | None = None,
        unused: int = 0,
        **attributes: Any,
    ) -> str:
        """Apply an operator to named values, and return the name of the first of its results."""
        result = self._fresh(operator) if name is None else name
        results = [result, *(f"{result}.{k}" for k in range(1, 1 + unused))]
        domain = DOMAINS.get(operator, "")
        node = self.onnx.helper.make_node(
            operator, list(inputs), results, self._fresh("node"), domain=domain, **attributes
        )
        self.nodes.append(node)
        return result

    def constant(self, values: Any) -> str:
        """Return the name of an array of constants."""
        array = np.asarray(values)
        array = array.astype(object) if array.dtype.kind == "U" else array
        name = self._fresh("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def side_by_side(self, names: Sequence[str]) -> str:
        """Return tables of the same rows as one table."""
        return names[0] if len(names) == 1 else self.add("Concat", *names, axis=1)
