"""Networks as ONNX nodes: matrix products, sums and ReLUs only, in float32."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from psilonnet.deploy.compact import CompactNet
from psilonnet.nn import PlainNet, fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.deploy.onnx.graph import GraphWriter
    from psilonnet.deploy.views import View
    from psilonnet.nn import AveragedNet


def write_networks(
    graph: GraphWriter, net: AveragedNet, views: Sequence[View], own: Sequence[int], seen: str
) -> str:
    """Write a weighted average of networks, and return the name of its outputs.

    Parameters
    ----------
    graph : GraphWriter
    net : AveragedNet
    views : sequence of View
        What the networks see of the columns.
    own : sequence of int
        The view of each part.
    seen : str
        The columns of all views side by side, in float32.
    """
    starts = [0, *torch.tensor([len(view.inputs) for view in views]).cumsum(0).tolist()]
    terms = []
    for part, v in zip(net.parts, own, strict=True):
        places = views[v].places(part) + starts[v]
        for member, weight in enumerate(part.weight.tolist()):
            folded = _folded(part.net.member(member), places, starts[-1])
            terms.append(_write_chain(graph, folded, weight, seen))
    total = terms[0]
    for term in terms[1:]:
        total = graph.add("Add", total, term)
    return total


def _write_chain(graph: GraphWriter, chain: nn.Sequential, share: float, seen: str) -> str:
    """Write Linear and ReLU layers; the share in the average goes into the last one."""
    value = seen
    for k, module in enumerate(chain):
        if not isinstance(module, nn.Linear):
            value = graph.add("Relu", value)
            continue
        factor = share if k == len(chain) - 1 else 1.0
        numbers = [module.weight.detach() * factor, module.bias.detach() * factor]
        constants = [graph.constant(n.float().numpy()) for n in numbers]
        value = graph.add("Gemm", value, *constants, transB=1)
    return value


def _folded(net: PlainNet, places: Tensor, columns: int) -> nn.Sequential:
    """Return the live part of a network as Linear and ReLU layers that read all columns."""
    # Folding first: of the ReLUs that make up a CReLU or knots, unused ones go as well.
    compact = CompactNet(PlainNet(fold(net)))
    first = compact.plain.layers[0]
    weight = first.weight.new_zeros(*first.weight.shape[:-1], columns)
    weight[..., places[compact.inputs]] = first.weight
    return fold(PlainNet.of_layers([replace(first, weight=weight), *compact.plain.layers[1:]]))
