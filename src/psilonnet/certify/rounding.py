"""How far float64 arithmetic can stray from exact arithmetic, as a bound computed in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import PlainNet

UNIT = 2.0**-53


def gamma(n: int) -> float:
    """Return the relative error of a sum of n products in any order, doubled for safety."""
    return 2 * n * UNIT / (1 - n * UNIT)


def inflated(total: Tensor, n: int) -> Tensor:
    """Return a computed sum of n non-negative terms, raised above the exact one."""
    return total * (1 + gamma(n))


def forward_error(net: PlainNet, x: Tensor, radius: Tensor) -> Tensor:
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

    Returns
    -------
    Tensor of shape (rows,): the largest over outputs and members
    """
    worst = torch.zeros(len(x), dtype=torch.float64)
    for member in range(len(net.layers[0].weight)):
        size = x.abs().amax(dim=-1) + radius
        error = torch.zeros_like(size)
        for layer in net.layers:
            w, b = layer.weight[member], float(layer.bias[member].abs().max())
            a = float(w.abs().sum(dim=(-1, -2)).max())
            g = gamma(w.shape[-1] * w.shape[-2] + 3)
            error = (1 + g) * a * error + g * (a * size + b)
            size = (a * size + b) * (1 + g) + error
        worst = torch.maximum(worst, error + size * 4 * UNIT)  # and the average over members
    return 2 * worst
