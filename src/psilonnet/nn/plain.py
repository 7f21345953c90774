"""A network as plain float64 matrices: the function that predictions and certificates are about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from psilonnet.functional import crelu, knots, relu
from psilonnet.nn.chain import plain_chain
from psilonnet.nn.crelu import CReLULinear
from psilonnet.nn.network import Network
from psilonnet.nn.pieces import KnotLinear, ReLULinear

if TYPE_CHECKING:
    from psilonnet.nn.linear import NormalizedLinear


ROWS = 128  # that go through a network at a time, at most


@dataclass(frozen=True)
class PlainLayer:
    """The map ``sum_t W_t phi_t(h) + b``; the identity of a residual block is added to each W_t.

    Attributes
    ----------
    weight : Tensor of shape (members, out, pieces, in)
    bias : Tensor of shape (members, out)
    split : {"none", "relu", "crelu", "knots"}
    edges : Tensor of shape (members, pieces - 1, in), or None
    """

    weight: Tensor
    bias: Tensor
    split: str
    edges: Tensor | None = None

    @classmethod
    def of(cls, layer: NormalizedLinear) -> PlainLayer:
        """Return a layer as matrices in float64."""
        weight = _own_copy(layer.weight)
        if layer.residual:
            weight = weight + torch.eye(weight.shape[-1], dtype=weight.dtype).unsqueeze(-2)
        members, n_out = weight.shape[:-3], weight.shape[-3]
        bias = weight.new_zeros(*members, n_out) if layer.bias is None else _own_copy(layer.bias)
        split, edges = "none", None
        if isinstance(layer, KnotLinear):
            split, edges = "knots", layer.edges.double().cpu().expand(*members, -1, -1)
        elif isinstance(layer, CReLULinear):
            split = "crelu"
        elif isinstance(layer, ReLULinear):
            split = "relu"
        if not members:
            weight, bias = weight.unsqueeze(0), bias.unsqueeze(0)
            edges = None if edges is None else edges.unsqueeze(0)
        return cls(weight, bias, split, edges)

    def member(self, number: int) -> PlainLayer:
        """Return the layer of one member, with a member axis of length one."""
        own = slice(number, number + 1)
        edges = None if self.edges is None else self.edges[own]
        return PlainLayer(self.weight[own], self.bias[own], self.split, edges)

    def rounded(self) -> PlainLayer:
        """Return the layer in numbers of float32; contiguous, so that a copy computes the same."""
        edges = None if self.edges is None else _narrow(self.edges)
        return PlainLayer(_narrow(self.weight), _narrow(self.bias), self.split, edges)

    def pieces(self, h: Tensor) -> Tensor:
        """Map (members, rows, in) to (members, rows, pieces, in)."""
        if self.split == "relu":
            return relu(h)
        if self.split == "crelu":
            return crelu(h)
        if self.edges is not None:
            return knots(h, self.edges.unsqueeze(-3))
        return h.unsqueeze(-2)

    def __call__(self, h: Tensor) -> Tensor:
        """Map (members, rows, in) to (members, rows, out); one member of h serves all of them."""
        split = self.pieces(h).flatten(-2)
        return (split @ self.weight.flatten(-2).mT).add_(self.bias.unsqueeze(-2))

    def with_shared_edges(self) -> PlainLayer:
        """Return the layer with one set of edges if all members have the same."""
        if self.edges is None or not bool((self.edges == self.edges[:1]).all()):
            return self
        return replace(self, edges=self.edges[:1])


class PlainNet:
    """A chain of plain layers.

    Parameters
    ----------
    net : Network, or nn.Sequential of Linear and ReLU layers
        A Network may have one member axis. The plain chain of its layers: no ``forward`` of its
        own, no forward hooks.

    Examples
    --------
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> PlainNet(net)(torch.zeros(5, 3)).shape
    torch.Size([1, 5, 1])
    """

    @torch.no_grad()
    def __init__(self, net: nn.Sequential) -> None:
        layers = plain_chain(net)
        _check_steady(layers)
        if isinstance(net, Network):
            self.layers = [PlainLayer.of(layer) for layer in net.layers]
        else:
            self.layers = _from_torch(layers)

    @classmethod
    def of_layers(cls, layers: list[PlainLayer]) -> PlainNet:
        """Return the chain of given layers."""
        net = cls.__new__(cls)
        net.layers = layers
        return net

    def member(self, number: int) -> PlainNet:
        """Return the chain of one member, with a member axis of length one."""
        return PlainNet.of_layers([layer.member(number) for layer in self.layers])

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Map rows of shape (rows, in) to (members, rows, out), in float64."""
        first, *others = self.layers
        first = first.with_shared_edges()  # so that all members take the same pieces of a row
        members = len(first.weight)
        widest = max(layer.weight[0, 0].numel() for layer in self.layers)
        size = members * widest
        rows = max(1, min(ROWS, 2**24 // size), 2**18 // size)  # at a time: what fits into caches
        outputs = []
        for part in torch.split(x.double().cpu(), rows):
            h = first(part.unsqueeze(0))
            for layer in others:
                h = layer(h)
            outputs.append(h)
        return torch.cat(outputs, dim=1)


def _narrow(tensor: Tensor) -> Tensor:
    return tensor.contiguous().float().double()


def _own_copy(tensor: Tensor) -> Tensor:
    """Return a tensor in float64 that does not move when the network is trained on."""
    return tensor.to("cpu", torch.float64, copy=True)


def _check_steady(layers: list[nn.Module]) -> None:
    """Refuse parametrizations that make something else of a layer each time it is read."""
    for place, layer in enumerate(layers):
        for name in getattr(layer, "parametrizations", ()):
            if not torch.equal(getattr(layer, name), getattr(layer, name)):
                raise TypeError(
                    f"A network must be the same each time it is read. The {name!r} of layer "
                    f"{place} is parametrized and changes: call net.eval() first (spectral_norm "
                    "goes on only in training), or torch.nn.utils.parametrize."
                    "remove_parametrizations."
                )


_KNOWN: WeakKeyDictionary[Network, tuple[list[object], list[Tensor], PlainNet]] = (
    WeakKeyDictionary()
)


def plain_net(net: Network) -> PlainNet:
    """Return the matrices of a network, remembered until something of the network changes.

    The tensors themselves are compared. Their versions, which autograd counts, would not do: a
    step of a fused optimiser and a write through ``.data`` leave them as they are.
    """
    layers = plain_chain(net)
    if any(layer._modules for layer in layers):  # parametrized: by what, cannot be compared
        return PlainNet(net)
    settings, tensors = _state(layers)
    known = _KNOWN.get(net)
    if known is None or known[0] != settings or not all(map(_same, known[1], tensors)):
        known = _KNOWN[net] = settings, [tensor.clone() for tensor in tensors], PlainNet(net)
    return known[2]


def _state(layers: list[nn.Module]) -> tuple[list[object], list[Tensor]]:
    """Return all that the function of a chain depends on: what each layer is, and its tensors."""
    settings: list[object] = []
    tensors = []
    for layer in layers:
        named = dict((*layer.named_parameters(), *layer.named_buffers()))
        formula = [getattr(layer, name, None) for name in ("normalization", "_stage")]
        settings.append((type(layer), *formula, *named))
        tensors += [tensor.detach() for tensor in named.values()]
    return settings, tensors


def _same(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.device == b.device and torch.equal(a, b)


def _from_torch(modules: list[nn.Module]) -> list[PlainLayer]:
    layers, split = [], "none"
    for layer in modules:
        if isinstance(layer, nn.ReLU):
            split = "relu"
        elif isinstance(layer, nn.Linear):
            weight = _own_copy(layer.weight)[None, :, None, :]
            bias = weight.new_zeros(1, weight.shape[1])
            bias = bias if layer.bias is None else _own_copy(layer.bias).unsqueeze(0)
            layers.append(PlainLayer(weight, bias, split))
            split = "none"
        else:
            raise TypeError(
                "A certificate needs a psilonnet network or an nn.Sequential of nn.Linear and "
                f"nn.ReLU. Got {type(layer).__name__} among its layers instead."
            )
    if split != "none" or not layers:
        raise TypeError("The last layer of the nn.Sequential must be an nn.Linear.")
    return layers
