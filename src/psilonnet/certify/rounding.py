"""How far rounded arithmetic can stray from exact arithmetic, as a bound computed in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import PlainNet

UNIT = 2.0**-53  # the unit roundoff of float64
LEAST = 2.0**-500  # no product of two such numbers underflows
LOST = LEAST**2  # more than a sum of products loses by underflow, also where it is flushed to zero


def gamma(n: int, unit: float = UNIT) -> float:
    """Return the relative error of a sum of n products in any order, doubled for safety."""
    return 2 * n * unit / (1 - n * unit)


def inflated(total: Tensor, n: int) -> Tensor:
    """Return a computed sum of n non-negative terms, raised above the exact one."""
    return total * (1 + gamma(n))


def lifted(size: Tensor) -> Tensor:
    """Return non-negative numbers, those above zero raised so that no product of two is lost."""
    return size + LEAST * size.sign()


def without_nan(bound: Tensor) -> Tensor:
    """Return a bound that is infinite where infinity times zero made it undefined."""
    return bound.nan_to_num(nan=torch.inf, posinf=torch.inf)


def combined_size(combinations: Tensor, weight: Tensor) -> Tensor:
    """Return no less than the size of combinations of the rows of a weight.

    Terms may cancel, so the rounding of their sum is measured by their sizes.

    Parameters
    ----------
    combinations : Tensor of shape (..., count, out)
    weight : Tensor of shape (..., out, pieces, in)

    Returns
    -------
    Tensor of shape (..., count, pieces, in)
    """
    n, flat = combinations.shape[-1], weight.flatten(-2)
    terms = lifted(combinations.abs()) @ lifted(flat.abs())
    size = inflated((combinations @ flat).abs() + gamma(n) * terms, n)
    return size.reshape(*size.shape[:-1], *weight.shape[-2:])


def forward_error(net: PlainNet, x: Tensor, radius: Tensor, *, unit: float = UNIT) -> Tensor:
    """Return by how much a computed output can differ from the exact one, near given rows.

    By induction over the layers, with A the largest sum of ``|W|`` in a row: inputs that are off
    by e, and no larger than h, give outputs that are off by at most
    ``(1 + g) A e + g (A h + |b|) + n t (1 + h)``, where n is the number of terms, g its
    :func:`gamma`, and t the smallest normal number: what underflow takes away from a weight or a
    product. It is infinite where an output can overflow.

    Parameters
    ----------
    net : PlainNet
    x : Tensor of shape (rows, in)
    radius : Tensor of shape (rows,)
        The bound holds for all inputs within this distance (L-infinity) of the row.
    unit : float, default=2**-53
        The unit roundoff of the arithmetic. With 2**-24 the bound is about a copy of the network in
        float32: inputs, weights and all that is computed. Larger ones are taken for bfloat16.

    Returns
    -------
    Tensor of shape (rows,): the largest over outputs and members
    """
    worst = torch.zeros(len(x), dtype=torch.float64)
    limits = torch.finfo(torch.float64 if unit <= UNIT else torch.float32)
    members = len(net.layers[0].weight)
    for member in range(members):
        size = x.abs().amax(dim=-1) + radius
        error = size * unit + limits.tiny  # inputs are rounded, too
        for layer in net.layers:
            w, b = layer.weight[member], float(layer.bias[member].abs().max())
            a = float(w.abs().sum(dim=(-1, -2)).max())
            n = w.shape[-1] * w.shape[-2] + 3
            g = gamma(n, unit)
            underflow = n * limits.tiny * (1 + size)
            error = (1 + g) * a * error + g * (a * size + b) + underflow
            size = (a * size + b) * (1 + g) + error
            error = torch.where(size <= limits.max, error, torch.inf)
        average = size * (members + 3) * unit  # its rounding, in whatever order
        worst = torch.maximum(worst, error + average)
    return 2 * worst
