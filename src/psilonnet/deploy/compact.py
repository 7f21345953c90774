"""A pruned network without what it no longer uses: smaller, and with the same outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from psilonnet.nn import Part, PlainNet, plain_net

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import Network, PlainLayer


class CompactNet:
    """The live part of a network, with the pieces kept apart, so that its bounds stay the same.

    A neuron that no live neuron reads is dead. A neuron that reads nothing is constant: what it
    adds to the layer above goes into the biases there. Both are removed, until none is left.

    Parameters
    ----------
    net : Network or PlainNet
    member : int, default=0
        Which one, if the network has a member axis.

    Attributes
    ----------
    inputs : Tensor of the inputs that are still read
    plain : PlainNet
        The live part, as a function of these inputs.

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> net = PSiLONNet(10, 1, width=64, depth=2, generator=torch.Generator().manual_seed(0))
    >>> with torch.no_grad():
    ...     for layer in net.layers:
    ...         _ = layer.direction.mul_(60.0)
    >>> net.set_prune_mix(1.0)
    >>> compact = CompactNet(net)
    >>> x = torch.randn(5, 10, dtype=torch.float64)
    >>> torch.allclose(compact(x), PlainNet(net)(x)[0])
    True
    """

    def __init__(self, net: Network | PlainNet, member: int = 0) -> None:
        whole = net if isinstance(net, PlainNet) else plain_net(net)
        layers = whole.member(member).layers
        self.inputs = torch.arange(layers[0].weight.shape[-1])
        before = None
        while before != self._sizes(layers):
            before = self._sizes(layers)
            layers = _without_constants(layers)
            layers = _without_dead(layers)
            read = (layers[0].weight[0] != 0).any(dim=1).any(dim=0)
            if bool(read.any()):  # a constant network keeps one input, to know the rows
                self.inputs = self.inputs[read]
                layers[0] = _keep_inputs(layers[0], read)
        self.plain = PlainNet.of_layers(layers)

    @staticmethod
    def _sizes(layers: list[PlainLayer]) -> list[torch.Size]:
        return [layer.weight.shape for layer in layers]

    @property
    def widths(self) -> list[int]:
        """The number of live inputs and neurons of each layer, from input to output."""
        return [len(self.inputs), *(layer.weight.shape[1] for layer in self.plain.layers)]

    def __call__(self, x: Tensor) -> Tensor:
        """Map all inputs, of shape (rows, in), to outputs (rows, out), in float64."""
        return self.plain(x[:, self.inputs])[0]


def compact_parts(part: Part) -> list[Part]:
    """Return the live part of each network of a part, as a part of its own.

    All its numbers are numbers of float32: what went into biases is rounded once, here. What a
    network is from now on are these numbers.
    """
    return [_compact_part(part, member) for member in range(part.members)]


def _compact_part(part: Part, member: int) -> Part:
    live = CompactNet(part.net, member)
    net = PlainNet.of_layers([layer.rounded() for layer in live.plain.layers])
    weight = part.weight[member : member + 1].clone()
    return Part(net, weight, part.columns.at(live.inputs), part.inputs[live.inputs])


def _keep_inputs(layer: PlainLayer, keep: Tensor) -> PlainLayer:
    edges = None if layer.edges is None else layer.edges[..., keep]
    return replace(layer, weight=layer.weight[..., keep], edges=edges)


def _keep_outputs(layer: PlainLayer, keep: Tensor) -> PlainLayer:
    return replace(layer, weight=layer.weight[:, keep], bias=layer.bias[:, keep])


def _without_constants(layers: list[PlainLayer]) -> list[PlainLayer]:
    """Fold neurons without a weight into the biases above them."""
    layers = list(layers)
    for k in range(len(layers) - 1):
        reads = (layers[k].weight[0] != 0).flatten(1).any(dim=1)
        if not bool(reads.all()) and bool(reads.any()):
            value = torch.where(reads, 0.0, layers[k].bias)  # of the constant neurons only
            above = layers[k + 1]
            pieces = above.pieces(value.unsqueeze(1)).squeeze(1)  # (1, pieces, in)
            pieces = torch.where(reads, 0.0, pieces)
            added = torch.einsum("msi,mosi->mo", pieces, above.weight)
            layers[k + 1] = _keep_inputs(replace(above, bias=above.bias + added), reads)
            layers[k] = _keep_outputs(layers[k], reads)
    return layers


def _without_dead(layers: list[PlainLayer]) -> list[PlainLayer]:
    """Remove neurons that nothing above reads, from the top down."""
    layers = list(layers)
    for k in range(len(layers) - 2, -1, -1):
        read = (layers[k + 1].weight[0] != 0).any(dim=1).any(dim=0)
        if not bool(read.all()) and bool(read.any()):
            layers[k + 1] = _keep_inputs(layers[k + 1], read)
            layers[k] = _keep_outputs(layers[k], read)
    return layers
