"""How far computed outputs can stray from exact ones, as a bound computed in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.certify.rounding import UNIT, gamma
from psilonnet.certify.seen import seen_box
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import Part, PlainNet


def forward_error(
    net: AveragedNet | PlainNet, x: Tensor, radius: Tensor, *, unit: float = UNIT
) -> Tensor:
    """Return by how much a computed output can differ from the exact one, near given rows.

    By induction over the layers, with A the largest sum of ``|W|`` in a row: inputs that are off
    by e, and no larger than h, give outputs that are off by at most
    ``(1 + g) A e + g (A h + |b|) + n t (1 + h)``, where n is the number of terms, g its
    :func:`gamma`, and t the smallest normal number: what underflow takes away from a weight or a
    product. It is infinite where an output can overflow. The first e is what the map of the
    columns is rounded by; errors are averaged as the outputs are, whose average is rounded, too.

    Parameters
    ----------
    net : AveragedNet or PlainNet
    x : Tensor of shape (rows, in)
    radius : Tensor of shape (rows,)
        The bound holds for all inputs within this distance (L-infinity) of the row.
    unit : float, default=2**-53
        The unit roundoff of the arithmetic. With 2**-24 the bound is about a copy of the network in
        float32: inputs, weights and all that is computed. Larger ones are taken for bfloat16.

    Returns
    -------
    Tensor of shape (rows,): the largest over the outputs
    """
    net = AveragedNet.of(net)
    terms = net.terms + len(net.parts) + 3  # of the average
    total = torch.zeros(len(x), dtype=torch.float64)
    for part in net.parts:
        total = total + _share(part, x, radius, terms, unit)
    return 2 * total.nan_to_num(nan=torch.inf)


def _share(part: Part, x: Tensor, radius: Tensor, terms: int, unit: float) -> Tensor:
    """Return the errors of the networks of a part, with their weights, of shape (rows,)."""
    limits = torch.finfo(torch.float64 if unit <= UNIT else torch.float32)
    reach = radius.unsqueeze(-1).expand_as(x)
    seen = seen_box(part, x, reach)
    start = seen.size.amax(dim=-1)
    off = seen.rounding.amax(dim=-1) * (unit / UNIT) + start * unit + limits.tiny
    if unit > UNIT:  # inputs are rounded before they are mapped, too
        before = (x.abs() + reach)[:, part.inputs] * part.columns.slope
        off = off + before.amax(dim=-1) * unit
    total = torch.zeros_like(start)
    for member, weight in enumerate(part.weight.abs().tolist()):
        size, error = start, off
        for layer in part.net.layers:
            w, b = layer.weight[member], float(layer.bias[member].abs().max())
            a = float(w.abs().sum(dim=(-1, -2)).max())
            n = w.shape[-1] * w.shape[-2] + 3
            g = gamma(n, unit)
            underflow = n * limits.tiny * (1 + size)
            error = (1 + g) * a * error + g * (a * size + b) + underflow
            size = (a * size + b) * (1 + g) + error
            error = torch.where(size <= limits.max, error, torch.inf)
        total = total + weight * (error + size * terms * unit) + terms * limits.tiny
    return total
