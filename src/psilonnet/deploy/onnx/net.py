"""Networks as ONNX graphs of matrix products, sums and ReLUs only."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from psilonnet._extras import require
from psilonnet.deploy.compact import CompactNet
from psilonnet.nn import PlainNet, fold, plain_net

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psilonnet.nn import Network

OPSET = 18


def net_to_onnx(net: Network) -> Any:
    """Return a network as an ONNX graph in float32, by way of ``torch.export``.

    Its input ``x`` of shape (rows, encoded columns) and its output ``outputs``, averaged over the
    members, have any number of rows. Neurons that are not used are left out.
    """
    require("onnxscript", "onnx")
    plain = plain_net(net)
    averaged = _Averaged(plain).float().eval()
    example = torch.zeros(2, plain.layers[0].weight.shape[-1])
    with _quiet():
        program = torch.onnx.export(
            averaged,
            (example,),
            dynamo=True,
            verbose=False,
            input_names=["x"],
            output_names=["outputs"],
            dynamic_shapes=({0: torch.export.Dim("rows")},),
            opset_version=OPSET,
        )
    graph = program.model_proto.graph  # type: ignore[union-attr]  # not None if dynamo is true
    _remove_metadata(graph)
    return graph


class _Averaged(nn.Module):
    """The mean of the members, each a chain of Linear and ReLU layers."""

    @torch.no_grad()
    def __init__(self, net: PlainNet) -> None:
        super().__init__()
        count = len(net.layers[0].weight)
        self.members = nn.ModuleList(_folded(net.member(m)) for m in range(count))
        for member in self.members:
            last = member[-1]  # type: ignore[index]
            last.weight.div_(count)
            last.bias.div_(count)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, in) to (rows, out)."""
        total: Tensor = self.members[0](x)
        for member in self.members[1:]:
            total = total + member(x)
        return total


def _folded(net: PlainNet) -> nn.Sequential:
    """Return the live part of one member as Linear and ReLU layers that read all inputs."""
    # Folding first: of the ReLUs that make up a CReLU or knots, unused ones go as well.
    compact = CompactNet(PlainNet(fold(net)))
    first = compact.plain.layers[0]
    weight = first.weight.new_zeros(*first.weight.shape[:-1], net.layers[0].weight.shape[-1])
    weight[..., compact.inputs] = first.weight
    return fold(PlainNet.of_layers([replace(first, weight=weight), *compact.plain.layers[1:]]))


def _remove_metadata(graph: Any) -> None:
    """Remove notes of the exporter: they hold paths of this machine, and outweigh small nets."""
    for part in (graph.node, graph.input, graph.output, graph.value_info, graph.initializer):
        for item in part:
            item.ClearField("metadata_props")
            item.ClearField("doc_string")
    graph.ClearField("metadata_props")
    graph.ClearField("value_info")


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress messages of torch that do not concern the user while it exports."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)  # that torchvision is not installed does not matter here
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*LeafSpec.*", FutureWarning)
            yield
    finally:
        logger.setLevel(level)
