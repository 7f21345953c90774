"""What networks see of an encoded table, with ONNX operators: in float64 until it is mapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.nn import BEND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.deploy.onnx.graph import GraphWriter
    from psilonnet.deploy.views import View


def write_views(graph: GraphWriter, views: Sequence[View], encoded: str) -> str:
    """Return the name of the columns of all views side by side, in float32."""
    kind = graph.onnx.TensorProto.FLOAT
    parts = [graph.add("Cast", _write_view(graph, view, encoded), to=kind) for view in views]
    return graph.side_by_side(parts)


def _write_view(graph: GraphWriter, view: View, encoded: str) -> str:
    columns = view.columns
    if not columns.bends:
        return encoded
    z = graph.add("Gather", encoded, graph.constant(view.inputs.numpy()), axis=1)
    center, scale = graph.constant(columns.center.numpy()), graph.constant(columns.scale.numpy())
    here = graph.add("Div", graph.add("Sub", z, center), scale)
    zero = graph.add("Neg", graph.add("Div", center, scale))
    ends = [_write_bend(graph, u, columns.bend) for u in (here, zero)]
    return graph.add("Where", graph.constant(columns.bent.numpy()), graph.add("Sub", *ends), z)


def _write_bend(graph: GraphWriter, u: str, bend: str) -> str:
    """Write ``u / sqrt(1 + (u / 3)^2)`` for "clipped", and ``3 asinh(u / 3)`` for "log_tails"."""
    third = graph.add("Div", u, graph.constant(BEND))
    square = graph.add("Add", graph.add("Mul", third, third), graph.constant(1.0))
    if bend == "clipped":
        return graph.add("Div", u, graph.add("Sqrt", square))
    # asinh of a magnitude, by functions that runtimes have in float64
    grown = graph.add("Log", graph.add("Add", graph.add("Abs", third), graph.add("Sqrt", square)))
    signed = graph.add("Mul", graph.add("Sign", third), grown)
    return graph.add("Mul", signed, graph.constant(BEND))


def seen_columns(views: Sequence[View], labels: Sequence[str]) -> list[str]:
    """Return a name for each column of the views: a bent one is called after its map, too."""
    return [
        f"{view.columns.bend} of {labels[k]}" if view.columns.bends and bent else labels[k]
        for view in views
        for k, bent in zip(view.inputs.tolist(), view.columns.bent.tolist(), strict=True)
    ]
