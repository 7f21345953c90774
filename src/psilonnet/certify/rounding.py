"""How far rounded arithmetic can stray from exact arithmetic, as a bound computed in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import PlainNet

UNIT = 2.0**-53  # the unit roundoff of float64


def gamma(n: int, unit: float = UNIT) -> float:
    """Return the relative error of a sum of n products in any order, doubled for safety."""
    return 2 * n * unit / (1 - n * unit)


def inflated(total: Tensor, n: int) -> Tensor:
    """Return a computed sum of n non-negative terms, raised above the exact one."""
    return total * (1 + gamma(n))


def forward_error(net: PlainNet, x: Tensor, radius: Tensor, *, unit: float = UNIT) -> Tensor:
    """Return by how much a computed output can differ from the exact one, near given rows.

    By induction over the layers, with A the largest sum of ``|W|`` in a row: inputs that are off
    by e, and no larger than h, give outputs that are off by at most
    ``(1 + g) A e + g (A h + |b|)``, where g = :func:`gamma` of the number of terms.

    Parameters
    ----------
    net : PlainNet
    x : Tensor of shape (rows, in)
    radius : Tensor of shape (rows,)
        The bound holds for all inputs within this distance (L-infinity) of the row.
    unit : float, default=2**-53
        The unit roundoff of the arithmetic. With 2**-24 the bound is about a copy of the network in
        float32: inputs, weights and all that is computed.

    Returns
    -------
    Tensor of shape (rows,): the largest over outputs and members
    """
    worst = torch.zeros(len(x), dtype=torch.float64)
    members = len(net.layers[0].weight)
    for member in range(members):
        size = x.abs().amax(dim=-1) + radius
        error = size * unit  # inputs are rounded, too
        for layer in net.layers:
            w, b = layer.weight[member], float(layer.bias[member].abs().max())
            a = float(w.abs().sum(dim=(-1, -2)).max())
            g = gamma(w.shape[-1] * w.shape[-2] + 3, unit)
            error = (1 + g) * a * error + g * (a * size + b)
            size = (a * size + b) * (1 + g) + error
        average = size * (members + 3) * unit  # its rounding, in whatever order
        worst = torch.maximum(worst, error + average)
    return 2 * worst
