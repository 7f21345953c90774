"""Whole models as ONNX files: the columns of a table go in, predictions come out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet._extras import require
from psilonnet._files import check_place, written
from psilonnet._version import __version__
from psilonnet.deploy.onnx.graph import GraphWriter
from psilonnet.deploy.onnx.net import write_networks
from psilonnet.deploy.onnx.seen import seen_columns, write_views
from psilonnet.deploy.onnx.table import TableGraph, empty_words, table_inputs
from psilonnet.deploy.views import shared_views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.deploy.onnx.outcome import Outcome
    from psilonnet.deploy.views import View
    from psilonnet.nn import AveragedNet
    from psilonnet.tables import TableEncoder

# Old ones on purpose: so that old runtimes read the files.
OPSETS, IR_VERSION = {"": 18, "ai.onnx.ml": 3}, 8


def write_onnx(
    path: str | os.PathLike[str], net: AveragedNet, encoder: TableEncoder, outcome: Outcome
) -> None:
    """Write the encoding of the table, the networks and the outcome as one ONNX model."""
    _check_names(encoder.names)
    graph = GraphWriter(encoder.names)
    encoded = TableGraph(encoder, graph).write()
    views, own = shared_views(net)
    raw = write_networks(graph, net, views, own, write_views(graph, views, encoded))
    outputs = outcome.write(graph, raw, encoder.names)
    made = graph.onnx.helper.make_graph(
        graph.nodes, "psilonnet", table_inputs(encoder), outputs, graph.constants
    )
    kinds = dict(zip(encoder.names, encoder.kinds, strict=True))
    notes = {"kinds": json.dumps(kinds), "empty_words": json.dumps(empty_words(encoder))}
    _write(path, made, notes)


def write_onnx_core(path: str | os.PathLike[str], net: AveragedNet, labels: Sequence[str]) -> None:
    """Write the networks alone; the names of their input's columns go with them.

    The input is what the networks see: the encoded columns, or, where maps bend them, the columns
    of each distinct map side by side. The maps then go with them as well.
    """
    graph = GraphWriter([])
    views, own = shared_views(net)
    columns = seen_columns(views, labels)
    write_networks(graph, net, views, own, "x")
    graph.nodes[-1].output[0] = "outputs"
    info, kind = graph.onnx.helper.make_tensor_value_info, graph.onnx.TensorProto.FLOAT
    x, outputs = (
        info("x", kind, ["rows", len(columns)]),
        info("outputs", kind, ["rows", net.outputs]),
    )
    made = graph.onnx.helper.make_graph(graph.nodes, "psilonnet", [x], [outputs], graph.constants)
    notes = {"columns": json.dumps(columns)}
    if any(view.columns.bends for view in views):
        notes["maps"] = json.dumps([_plain_view(view) for view in views])
    _write(path, made, notes)


def _plain_view(view: View) -> dict[str, Any]:
    own = {name: getattr(view.columns, name).tolist() for name in ("bent", "center", "scale")}
    return {"bend": view.columns.bend, "inputs": view.inputs.tolist(), **own}


def _check_names(names: Sequence[str]) -> None:
    if "" in names:
        raise ValueError(
            "Every column needs a name in an ONNX file. The name of column "
            f"{list(names).index('')} is '': rename it, and fit again."
        )


def _write(path: str | os.PathLike[str], graph: Any, notes: dict[str, str]) -> None:
    """Check a graph and write it; a reader sees the file whole or not at all."""
    onnx = require("onnx", "onnx")
    used = {node.domain for node in graph.node}
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in OPSETS.items() if d in used],
        ir_version=IR_VERSION,
        producer_name="psilonnet",
        producer_version=__version__,
    )
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    check_place(Path(path))
    with written(Path(path)) as aside:
        aside.write_bytes(model.SerializeToString())
