"""From our layers to plain ``nn.Linear`` and ``nn.ReLU``, with the same outputs.

Between two layers the plain net carries non-negative features, the outputs of a ReLU. Each of
our layers reads a linear function of such features, so a layer folds into two matrices: what it
*asks for* (affine maps of its input, each put through a ReLU) and what it *makes* of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from psilonnet.nn.crelu import CReLULinear
from psilonnet.nn.pieces import KnotLinear, ReLULinear

if TYPE_CHECKING:
    from psilonnet.nn.linear import NormalizedLinear
    from psilonnet.nn.network import Network


class _Affine(NamedTuple):
    weight: Tensor  # (out, in)
    bias: Tensor  # (out,)

    def after(self, inner: _Affine) -> _Affine:
        return _Affine(self.weight @ inner.weight, self.weight @ inner.bias + self.bias)


@torch.no_grad()
def fold(net: Network) -> nn.Sequential:
    """Return a plain net of ``nn.Linear`` and ``nn.ReLU`` modules with the same outputs.

    CReLU becomes two ReLUs of opposite sign, knots become differences of ReLUs, and skips are
    added to the weights. The plain net is larger, and its path norm looser: certify the
    original, ship the plain one.

    Parameters
    ----------
    net : Network
        Without member axes.

    Returns
    -------
    nn.Sequential

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
    first = net.layers[0]
    if first.direction.dim() != 3:
        members = tuple(first.direction.shape[:-3])
        raise ValueError(
            f"Only a network without member axes can be folded. Got members {members}: "
            "take one member out first."
        )
    modules: list[nn.Module] = []
    n_in = first.direction.shape[-1]
    pending = _Affine(torch.eye(n_in, dtype=torch.float64), torch.zeros(n_in, dtype=torch.float64))
    for layer in net.layers:
        asks, makes = _fold_layer(layer)
        if asks is not None:
            modules += [_linear(asks.after(pending), like=layer), nn.ReLU()]
            pending = makes
        else:
            pending = makes.after(pending)
    return nn.Sequential(*modules, _linear(pending, like=net.layers[-1]))


def _fold_layer(layer: NormalizedLinear) -> tuple[_Affine | None, _Affine]:
    """Return what a layer asks for (None: its input as it is) and what it makes of it."""
    w = layer.weight.double()  # (out, pieces, in)
    n_out, _, n_in = w.shape
    bias = w.new_zeros(n_out) if layer.bias is None else layer.bias.double()
    eye = torch.eye(n_in, dtype=w.dtype)
    zero = w.new_zeros(n_in)
    if isinstance(layer, ReLULinear):
        return _Affine(eye, zero), _Affine(w[:, 0], bias)
    if isinstance(layer, CReLULinear):
        positive, negative = (w + eye.unsqueeze(1) if layer.residual else w).unbind(1)
        both = torch.cat((eye, -eye))  # min(z, 0) = -relu(-z)
        return _Affine(both, w.new_zeros(2 * n_in)), _Affine(
            torch.cat((positive, -negative), 1), bias
        )
    if isinstance(layer, KnotLinear):
        return _fold_knots(w, bias, layer.edges.double())
    return None, _Affine(w[:, 0], bias)


def _fold_knots(w: Tensor, bias: Tensor, edges: Tensor) -> tuple[_Affine, _Affine]:
    """Write ``sum_t W_t knots_t(x)`` as ``W_1 x + sum_t (W_{t+1} - W_t) relu(x - k_t) + c``."""
    n_edges, n_in = edges.shape
    eye = torch.eye(n_in, dtype=w.dtype)
    asks = _Affine(
        torch.cat((eye, -eye, eye.repeat(n_edges, 1))),
        torch.cat((w.new_zeros(2 * n_in), -edges.flatten())),
    )
    jumps = w.diff(dim=1)  # (out, pieces - 1, in)
    offset = (jumps * torch.relu(-edges)).sum(dim=(1, 2))  # so that the map is b at x = 0
    makes = _Affine(torch.cat((w[:, 0], -w[:, 0], jumps.flatten(1)), dim=1), bias - offset)
    return asks, makes


def _linear(affine: _Affine, like: NormalizedLinear) -> nn.Linear:
    n_out, n_in = affine.weight.shape
    linear = nn.Linear(n_in, n_out, device="meta").to_empty(device="cpu")
    linear = linear.to(like.direction.dtype)
    linear.weight.copy_(affine.weight)
    linear.bias.copy_(affine.bias)
    return linear
