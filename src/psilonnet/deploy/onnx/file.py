"""Whole models as ONNX files: the columns of a table go in, predictions come out."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet._extras import require
from psilonnet._files import written
from psilonnet.deploy.onnx.graph import GraphWriter
from psilonnet.deploy.onnx.net import OPSET, net_to_onnx
from psilonnet.deploy.onnx.table import TableGraph, table_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.deploy.onnx.outcome import Outcome
    from psilonnet.nn import Network
    from psilonnet.tables import TableEncoder

# Old ones on purpose: so that old runtimes read the files.
OPSETS, IR_VERSION = {"": OPSET, "ai.onnx.ml": 3}, 8


def write_onnx(
    path: str | os.PathLike[str], net: Network, encoder: TableEncoder, outcome: Outcome
) -> None:
    """Write the encoding of the table, the network and the outcome as one ONNX model."""
    _check_names(encoder.names)
    graph = GraphWriter(encoder.names)
    encoded = TableGraph(encoder, graph).write()
    raw = graph.insert(net_to_onnx(net), encoded)
    outputs = outcome.write(graph, raw, encoder.names)
    made = graph.onnx.helper.make_graph(
        graph.nodes, "psilonnet", table_inputs(encoder), outputs, graph.constants
    )
    kinds = dict(zip(encoder.names, encoder.kinds, strict=True))
    _write(path, made, {"kinds": json.dumps(kinds)})


def write_onnx_core(path: str | os.PathLike[str], net: Network, columns: Sequence[str]) -> None:
    """Write a network alone; the names of its input's columns go with it."""
    _write(path, net_to_onnx(net), {"columns": json.dumps(list(columns))})


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
        producer_version=version("psilonnet"),
    )
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    with written(Path(path)) as aside:
        aside.write_bytes(model.SerializeToString())
