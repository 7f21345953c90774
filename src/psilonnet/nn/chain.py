"""Whether a module computes its layers one after the other, and nothing else.

Bounds, certificates and folding read the layers of a network and never call it. They hold for its
outputs only if nothing else changes these: no ``forward`` of a subclass, no hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from torch.nn.modules import module as torch_module

from psilonnet.nn.crelu import CReLUBlock, CReLULinear
from psilonnet.nn.linear import NormalizedLinear
from psilonnet.nn.network import Network
from psilonnet.nn.pieces import KnotLinear, ReLULinear

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

# Activations whose slope lies between 0 and 1, as Theorem 1 asks; and layers that change nothing
# once training is over.
ACTIVATIONS = (nn.ReLU, nn.Identity, nn.Flatten, nn.Dropout, nn.Sigmoid, nn.Tanh, nn.Hardtanh)

_COMPUTES = ("__call__", "forward")
_LAYER = (*_COMPUTES, "weight", "_make_weight", "residual")
_NETWORK = (*_COMPUTES, "layers", "weights", "lengths", "residual")
# What each kind of module computes depends on these attributes of its class. A subclass comes
# before its base class.
_KINDS: dict[type[nn.Module], tuple[str, ...]] = {
    **dict.fromkeys((CReLUBlock, CReLULinear, ReLULinear, KnotLinear, NormalizedLinear), _LAYER),
    Network: _NETWORK,
    **dict.fromkeys((nn.Sequential, nn.Linear, *ACTIVATIONS), _COMPUTES),
}


def plain_chain(net: nn.Module) -> list[nn.Module]:
    """Return the layers of a network from input to output, if it computes them and nothing else.

    Parametrizations are no obstacle, since ``weight`` is what they make of it; nor are hooks of the
    backward pass.

    Parameters
    ----------
    net : Network, nn.Sequential, or a single layer
    """
    if torch_module._global_forward_hooks or torch_module._global_forward_pre_hooks:
        raise TypeError(_refusal("all modules", "a forward hook"))
    layers = list(_layers(net))
    for place, module in enumerate([net, *layers], start=-1):
        kind = next((kind for kind in _KINDS if isinstance(module, kind)), None)
        # A module of no known kind has no attributes to compare: the caller decides about it.
        attributes = () if kind is None else _KINDS[kind]
        check_behaviour(module, kind or type(module), attributes, place)
    return layers


def check_behaviour(
    module: nn.Module, kind: type[nn.Module], attributes: tuple[str, ...], place: int = -1
) -> None:
    """Refuse a module that has a forward hook, or some attributes other than those of its kind.

    Parameters
    ----------
    module : nn.Module
    kind : type
    attributes : tuple of str
        What the module computes depends on these.
    place : int, default=-1
        Its number among the layers of a network, if it is one.
    """
    what = _own_behaviour(module, kind, attributes)
    if what is not None:
        name = type(module).__name__ + (f" (layer {place})" if place >= 0 else "")
        raise TypeError(_refusal(name, what))


def chain_weights(net: nn.Module) -> tuple[list[Tensor], tuple[bool, ...] | None]:
    """Return the weights of a chain, and which layers the identity is added to.

    A Linear layer has a weight with one piece.
    """
    layers = plain_chain(net)
    if isinstance(net, Network):
        return net.weights(), net.residual
    weights = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            weights.append(layer.weight.unsqueeze(-2))
        elif not isinstance(layer, ACTIVATIONS):
            raise TypeError(
                "A path norm needs a psilonnet network or an nn.Sequential of nn.Linear layers and "
                "activations with slopes between 0 and 1, such as nn.ReLU. "
                f"Got {type(layer).__name__} instead."
            )
    return weights, None


def _layers(net: nn.Module) -> Iterator[nn.Module]:
    if not isinstance(net, Network):
        yield from net if isinstance(net, nn.Sequential) else (net,)
        return
    for place, layer in enumerate(net.layers):
        if not isinstance(layer, NormalizedLinear):
            raise TypeError(
                "A Network is a chain of layers of psilonnet. "
                f"Got {type(layer).__name__} as layer {place} instead: use nn.Sequential."
            )
        if not isinstance(layer, (CReLULinear, KnotLinear)) and layer.pieces > 1:
            raise TypeError(
                "A bound is about what the network itself splits. Got layer "
                f"{place}, which takes {layer.pieces} pieces as its inputs: use CReLULinear or "
                "KnotLinear, which split their inputs themselves."
            )
        yield layer


def _own_behaviour(
    module: nn.Module, kind: type[nn.Module], attributes: tuple[str, ...]
) -> str | None:
    """Return what makes a module compute something else than its kind, or None."""
    if module._forward_hooks or module._forward_pre_hooks:
        return "a forward hook"
    for name in attributes:
        if name in module.__dict__ or getattr(type(module), name) is not getattr(kind, name):
            return f"its own {name!r}"
    return None


def _refusal(name: str, what: str) -> str:
    remedy = (
        "remove it first (torch.nn.utils.prune.remove makes a pruning permanent, and "
        "torch.nn.utils.parametrizations need no hook)"
        if "hook" in what
        else "put plain layers into a plain nn.Sequential or Network, and ask about that"
    )
    return (
        "What is read from the layers of a network holds for the plain chain of them, and nothing "
        f"else. Got {name} with {what} instead: {remedy}."
    )
