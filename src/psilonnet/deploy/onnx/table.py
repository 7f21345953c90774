"""The encoding of a table with ONNX operators, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.tables import FAR, CategoryCode, NumberCode

if TYPE_CHECKING:
    from psilonnet.deploy.onnx.graph import GraphWriter
    from psilonnet.tables import TableEncoder

HUGE = 1e290  # of smaller scales, what overflows is farther than FAR
MISSING = ""  # the word for a missing cell


class TableGraph:
    """Writes what ``encoder.encode`` does into a graph.

    Columns of the same kind are encoded side by side: a wide table needs few nodes.

    Parameters
    ----------
    encoder : TableEncoder
    graph : GraphWriter
    """

    def __init__(self, encoder: TableEncoder, graph: GraphWriter) -> None:
        self.graph = graph
        self.columns = list(zip(encoder.names, encoder.codes, strict=True))
        widths = [code.width for code in encoder.codes]
        self.first = dict(zip(encoder.names, np.cumsum([0, *widths[:-1]]).tolist(), strict=True))
        self.float64 = graph.onnx.TensorProto.DOUBLE
        self.parts: list[str] = []
        self.places: list[int] = []  # of the columns of the parts among the encoded columns

    def write(self) -> str:
        """Return the name of the encoded table, in float64."""
        numbers = [(n, c) for n, c in self.columns if isinstance(c, NumberCode)]
        scaled = [(n, c) for n, c in numbers if c.scale > 0]
        self._numbers(scaled)
        self._missing_marks([(n, c) for n, c in numbers if c.has_missing])
        words = [(n, c) for n, c in self.columns if isinstance(c, CategoryCode) and c.width > 0]
        self._signs([(n, c) for n, c in words if c.is_sign])
        self._levels([(n, c) for n, c in words if not c.is_sign])
        together = self.graph.side_by_side(self.parts)
        if self.places == sorted(self.places):
            return together
        order = self.graph.constant(np.argsort(self.places))
        return self.graph.add("Gather", together, order, axis=1)

    def _numbers(self, columns: list[tuple[str, NumberCode]]) -> None:
        if not columns:
            return
        graph = self.graph
        raw = graph.side_by_side([name for name, _ in columns])
        # The difference of the halves does not overflow.
        half = 0.5 if max(code.scale for _, code in columns) > HUGE else 1.0
        raw = raw if half == 1 else graph.add("Mul", raw, graph.constant(half))
        center = graph.constant([half * code.center for _, code in columns])
        scale = graph.constant([half * code.scale for _, code in columns])
        filled = graph.add("Where", graph.add("IsNaN", raw), center, raw)
        z = graph.add("Div", graph.add("Sub", filled, center), scale)
        z = graph.add("Clip", z, graph.constant(-FAR), graph.constant(FAR))
        self._keep(z, [self.first[name] for name, _ in columns])

    def _missing_marks(self, columns: list[tuple[str, NumberCode]]) -> None:
        """Write the columns that tell whether a number is missing."""
        if columns:
            raw = self.graph.side_by_side([name for name, _ in columns])
            places = [self.first[name] + code.width - 1 for name, code in columns]
            self._keep(self.graph.add("IsNaN", raw), places)

    def _signs(self, columns: list[tuple[str, CategoryCode]]) -> None:
        """Write two levels as -1 and +1, all else as 0; beside it what is missing."""
        for name, code in columns:
            sign = self.graph.add(
                "LabelEncoder",
                name,
                keys_strings=list(code.levels),
                values_floats=[-1.0, 1.0],
                default_float=0.0,
            )
            self._keep(sign, [self.first[name]])
            if code.has_missing:
                mark = self.graph.add(
                    "LabelEncoder",
                    name,
                    keys_strings=[MISSING],
                    values_floats=[1.0],
                    default_float=0.0,
                )
                self._keep(mark, [self.first[name] + 1])

    def _levels(self, columns: list[tuple[str, CategoryCode]]) -> None:
        """Write one 0/1 column per level: first the numbers of the levels, then comparisons."""
        if not columns:
            return
        graph = self.graph
        numbers = graph.side_by_side([self._level_numbers(n, c) for n, c in columns])
        widths = [code.width for _, code in columns]
        source = graph.constant(np.repeat(np.arange(len(columns)), widths))
        wanted = graph.constant(np.concatenate([np.arange(w, dtype=np.int64) for w in widths]))
        hits = graph.add("Equal", graph.add("Gather", numbers, source, axis=1), wanted)
        places = [range(self.first[n], self.first[n] + c.width) for n, c in columns]
        self._keep(hits, [place for own in places for place in own])

    def _level_numbers(self, name: str, code: CategoryCode) -> str:
        numbers = {level: k for k, level in enumerate(code.levels)}
        if MISSING in numbers and code.has_missing:
            raise ValueError(
                "The empty word stands for a missing cell in an ONNX file. Column "
                f"{name!r} has missing cells and empty words: replace one by the other, and fit "
                "again."
            )
        missing = len(code.levels) + code.has_rare if code.has_missing else -1
        numbers.setdefault(MISSING, missing)
        return self.graph.add(
            "LabelEncoder",
            name,
            keys_strings=list(numbers),
            values_int64s=list(numbers.values()),
            default_int64=len(code.levels) if code.has_rare else -1,
        )

    def _keep(self, values: str, places: list[int]) -> None:
        """Note a part of the encoded table and where its columns belong."""
        self.parts.append(self.graph.add("Cast", values, to=self.float64))
        self.places += places


def empty_words(encoder: TableEncoder) -> list[str]:
    """Return the columns in which the empty word is a level, and stands for no missing cell."""
    pairs = zip(encoder.names, encoder.codes, strict=True)
    words = [(n, c) for n, c in pairs if isinstance(c, CategoryCode) and c.width > 0]
    return [name for name, code in words if MISSING in code.levels]


def table_inputs(encoder: TableEncoder) -> list[Any]:
    """Return one input of shape (rows, 1) per column: numbers and times in float64, or words."""
    onnx = require("onnx", "onnx")
    types = {"category": onnx.TensorProto.STRING}
    return [
        onnx.helper.make_tensor_value_info(
            name, types.get(kind, onnx.TensorProto.DOUBLE), ["rows", 1]
        )
        for name, kind in zip(encoder.names, encoder.kinds, strict=True)
    ]
