"""From our layers to plain ``nn.Linear`` and ``nn.ReLU``, with the same outputs.

Between two layers the plain net carries non-negative features, the outputs of a ReLU. Each of
our layers reads a linear function of such features, so a layer folds into two affine maps: an
*inner* one of its input, whose outputs go through a ReLU, and an *outer* one of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from psilonnet.nn.plain import PlainNet

if TYPE_CHECKING:
    from psilonnet.nn.network import Network
    from psilonnet.nn.plain import PlainLayer


class _Affine(NamedTuple):
    weight: Tensor  # (out, in)
    bias: Tensor  # (out,)

    def after(self, first: _Affine) -> _Affine:
        return _Affine(self.weight @ first.weight, self.weight @ first.bias + self.bias)


@torch.no_grad()
def fold(net: Network | PlainNet) -> nn.Sequential:
    """Return a plain net of ``nn.Linear`` and ``nn.ReLU`` modules with the same outputs.

    CReLU becomes two ReLUs of opposite sign, knots become differences of ReLUs, and skips are
    added to the weights. The plain net is larger, and its path norm looser: certify the
    original, ship the plain one.

    Parameters
    ----------
    net : Network or PlainNet
        Without member axes, or a PlainNet of one member.

    Returns
    -------
    nn.Sequential
        Of the type of the network's weights.

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> fold(PSiLONNet(4, 1, width=8, depth=1))
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """
    layers = _layers_of_one(net)
    modules: list[nn.Module] = []
    n_in = layers[0].weight.shape[-1]
    pending = _Affine(torch.eye(n_in, dtype=torch.float64), torch.zeros(n_in, dtype=torch.float64))
    for layer in layers:
        inner, outer = _fold_layer(layer)
        if inner is not None:
            modules += [_linear(inner.after(pending)), nn.ReLU()]
            pending = outer
        else:
            pending = outer.after(pending)
    folded = nn.Sequential(*modules, _linear(pending))
    return folded if isinstance(net, PlainNet) else folded.to(net.layers[0].direction.dtype)


def _layers_of_one(net: Network | PlainNet) -> list[PlainLayer]:
    """Return the layers as matrices in float64, with a member axis of length one."""
    if isinstance(net, PlainNet):
        layers, members = net.layers, tuple(net.layers[0].weight.shape[:1])
        folds = members == (1,)
    else:
        members = tuple(net.layers[0].direction.shape[:-3])
        folds = members == ()
        layers = PlainNet(net).layers if folds else []
    if not folds:
        raise ValueError(
            f"Only a network without member axes can be folded. Got members {members}: "
            "take one member out first."
        )
    return layers


def _fold_layer(layer: PlainLayer) -> tuple[_Affine | None, _Affine]:
    """Return the inner map of a layer (None: its input goes through no ReLU) and the outer one."""
    w, bias = layer.weight[0], layer.bias[0]  # (out, pieces, in), (out,)
    n_in = w.shape[-1]
    eye = torch.eye(n_in, dtype=w.dtype)
    if layer.split == "relu":
        return _Affine(eye, w.new_zeros(n_in)), _Affine(w[:, 0], bias)
    if layer.split == "crelu":
        both = torch.cat((eye, -eye))  # min(z, 0) = -relu(-z)
        outer = torch.cat((w[:, 0], -w[:, 1]), dim=1)
        return _Affine(both, w.new_zeros(2 * n_in)), _Affine(outer, bias)
    if layer.edges is not None:
        return _fold_knots(w, bias, layer.edges[0])
    return None, _Affine(w[:, 0], bias)


def _fold_knots(w: Tensor, bias: Tensor, edges: Tensor) -> tuple[_Affine, _Affine]:
    """Write ``sum_t W_t knots_t(x)`` as ``W_1 x + sum_t (W_{t+1} - W_t) relu(x - k_t) + c``."""
    n_edges, n_in = edges.shape
    eye = torch.eye(n_in, dtype=w.dtype)
    inner = _Affine(
        torch.cat((eye, -eye, eye.repeat(n_edges, 1))),
        torch.cat((w.new_zeros(2 * n_in), -edges.flatten())),
    )
    jumps = w.diff(dim=1)  # (out, pieces - 1, in)
    offset = (jumps * torch.relu(-edges)).sum(dim=(1, 2))  # so that the map is b at x = 0
    outer = _Affine(torch.cat((w[:, 0], -w[:, 0], jumps.flatten(1)), dim=1), bias - offset)
    return inner, outer


def _linear(affine: _Affine) -> nn.Linear:
    n_out, n_in = affine.weight.shape
    linear = nn.Linear(n_in, n_out, device="meta", dtype=affine.weight.dtype)
    linear = linear.to_empty(device="cpu")
    linear.weight.copy_(affine.weight)
    linear.bias.copy_(affine.bias)
    return linear
