"""Slopes with a sign: the term that makes networks monotone, and the proof that it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.certify.global_bound import piece_masses
from psilonnet.certify.rounding import UNIT, inflated, lifted
from psilonnet.certify.seen import steepest
from psilonnet.nn import AveragedNet, MonotoneNet, Part, inner_net
from psilonnet.tables import CategoryCode

if TYPE_CHECKING:
    from torch import Tensor, nn

    from psilonnet.nn import PlainNet
    from psilonnet.tables import TableEncoder

Floats = np.ndarray[Any, np.dtype[np.float64]]

MARGIN = 2.0**-26  # more than masses differ by when their sums are rounded in another order


def increasing_term(net: PlainNet, signs: Tensor) -> Tensor:
    """Return how many times each piece of an input must be added, so that slopes have their signs.

    It is the mass of the piece in the very numbers of the network, computed in float64, raised by
    more than its rounding, and rounded up to a number of float32. It is raised a little more than
    that, so that the same masses prove the sign where sums are rounded in another order.

    Parameters
    ----------
    net : PlainNet
        With one output.
    signs : Tensor of shape (in,)
        -1, 0 or 1.

    Returns
    -------
    Tensor of shape (members, pieces, in)
    """
    mass = piece_masses(net, torch.ones(1, 1, dtype=torch.float64)).squeeze(1) * (1 + MARGIN)
    narrow = mass.float()
    above = torch.nextafter(narrow, torch.full_like(narrow, torch.inf))
    up = torch.where(narrow.double() < mass, above, narrow).double()
    return torch.where(signs == 0, 0.0, up * signs)


def averaged(net: nn.Module | PlainNet | AveragedNet) -> AveragedNet:
    """Return networks that see the columns as they are; a :class:`MonotoneNet` with its term."""
    if not isinstance(net, MonotoneNet):
        return AveragedNet.of(net)  # type: ignore[arg-type]
    (part,) = AveragedNet.of(inner_net(net)).networks
    term = increasing_term(part.net, net.signs.double().cpu())
    return AveragedNet(
        [Part(part.net, part.weight, part.columns, part.inputs, term)], term.shape[-1]
    )


def slope_range(net: AveragedNet) -> tuple[Tensor, Tensor]:
    """Return between which numbers every slope of each output along each column lies.

    A network whose slope along piece t is at most M in size has slopes from c - M to c + M together
    with a term c. The map in front of a column has slopes of at least 0. What holds for each
    network holds for their average. The difference c - M is at least 0 in floating point whenever
    it is in exact arithmetic, so that a sign that is proven is shown as proven.

    Parameters
    ----------
    net : AveragedNet

    Returns
    -------
    low, high : Tensor of shape (outputs, encoded columns)
    """
    eye = torch.eye(net.outputs, dtype=torch.float64)
    low, high = torch.zeros(2, net.outputs, net.columns, dtype=torch.float64)
    for part in net.networks:
        mass = piece_masses(part.net, eye)  # (members, outputs, pieces, in)
        term = mass.new_zeros(()) if part.increasing is None else part.increasing.unsqueeze(1)
        slope = lifted(steepest(part.columns, torch.ones_like(part.columns.scale)))
        falls, rises = (mass - term).amax(dim=-2), (mass + term).amax(dim=-2)
        for total, most in ((low, falls), (high, rises)):
            size = lifted((most * (1 + 4 * UNIT)).clamp(min=0.0)) * slope
            moved = torch.einsum("m,moi->oi", lifted(part.weight.abs()), size)
            total.index_add_(1, part.inputs, inflated(moved, part.members + 2))
    low, high = (inflated(total, len(net.parts)) for total in (low, high))
    return 0.0 - low, high


def column_slopes(net: AveragedNet, encoder: TableEncoder, scale: Floats) -> Floats:
    """Return the least and the largest slope of outputs along columns, in the units of the table.

    Parameters
    ----------
    net : AveragedNet
    encoder : TableEncoder
    scale : ndarray of shape (outputs,)
        By how much each output is multiplied; above 0.

    Returns
    -------
    ndarray of shape (columns, 2), or (outputs, columns, 2) for several outputs
        For a boolean, of the change from False to True; NaN for words.
    """
    encoded = torch.stack(slope_range(net), dim=-1).numpy() * np.asarray(scale)[:, None, None]
    slopes = np.zeros((len(scale), len(encoder.codes), 2))
    for k, (code, places) in enumerate(zip(encoder.codes, encoder.places, strict=True)):
        if isinstance(code, CategoryCode):
            change = 2 * encoded[:, places[0]] if code.is_sign else np.nan
            slopes[:, k] = change if code.width else 0.0
        elif code.scale > 0:
            slopes[:, k] = encoded[:, places[0]] * code.slope
    slopes *= 1 + 8 * UNIT
    return slopes[0] if len(slopes) == 1 else slopes
