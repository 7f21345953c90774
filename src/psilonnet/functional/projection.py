"""Projection of weight rows onto the L1 sphere and into the L1 ball, for any number of pieces.

The norm of a row ``v`` of shape ``(pieces, in)`` is ``sum_i max_t |v[t, i]|``. All projections
here subtract one threshold from every magnitude (soft-thresholding), so small weights become
exactly zero. For one piece this is the Euclidean projection; for several it is not, in spite
of the title of Alg. 3 (Deviation D4, PAPER.md).
"""

from typing import Any

import torch
from torch import Tensor

from psilonnet.functional.pieces import largest_piece


def _shifted_threshold(magnitude: Tensor) -> Tensor:
    """Return the tau with ``sum_i max(0, m_i - tau) = 1`` for magnitudes ``m <= 0 = max(m)``.

    Shifted so that the largest magnitude is 0, every number that matters is at most 1 in size;
    Alg. 1 sorts, and subtracts 1 from a running sum, in which it is lost if the sum is large.
    """
    support: Tensor = _above_threshold(magnitude.detach())
    count = support.sum(dim=-1, keepdim=True)
    # As a function of its support: the gradient is 1/|support| there.
    return ((support * magnitude).sum(dim=-1, keepdim=True) - 1) / count


@torch.library.custom_op("psilonnet::above_threshold", mutates_args=())
def _above_threshold(m: Tensor) -> Tensor:
    """Return 1 where one of the magnitudes ``m <= 0 = max(m)`` exceeds its tau, 0 elsewhere.

    Newton's method on a convex, piecewise linear function: from the left it never passes the root,
    each step leaves out magnitudes that are below it, and it ends when there are no more. How many
    steps that takes depends on the numbers, so to ``vmap`` and ``compile`` it is one operation.
    """
    tau = torch.full_like(m[..., :1], -1.0)
    above = torch.empty_like(m)
    count, fewer = torch.full_like(tau, torch.inf), True
    while fewer:
        torch.sub(m, tau, out=above).clamp_(min=0)
        excess = above.sum(dim=-1, keepdim=True) - 1
        before, count = count, above.sgn_().sum(dim=-1, keepdim=True)
        tau = torch.maximum(tau, tau + excess / count)
        fewer = bool((count < before).any())
    return above


@_above_threshold.register_fake
def _(m: Tensor) -> Tensor:
    return torch.empty_like(m)


@_above_threshold.register_vmap
def _(info: Any, in_dims: tuple[int], m: Tensor) -> tuple[Tensor, int]:
    return _above_threshold(m.movedim(in_dims[0], 0)), 0


def threshold(w: Tensor) -> Tensor:
    """Return the tau for which ``sum_i max(0, |w_i| - tau) = 1``.

    Implements Alg. (1). It is negative for vectors inside the unit ball.

    Parameters
    ----------
    w : Tensor of shape (..., n)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> threshold(torch.tensor([2.0, -1.5, 0.1]))
    tensor(1.2500)
    """
    magnitude = w.abs()
    largest = magnitude.detach().amax(dim=-1, keepdim=True)
    return (_shifted_threshold(magnitude - largest) + largest).squeeze(-1)


def _soft_threshold(v: Tensor, *, onto_sphere: bool) -> Tensor:
    """Subtract the threshold of ``max_t |v_t|`` from every magnitude of a row."""
    magnitude = largest_piece(v)  # (..., in)
    largest = magnitude.detach().amax(dim=-1, keepdim=True)
    tau = _shifted_threshold(magnitude - largest).unsqueeze(-2)
    largest = largest.unsqueeze(-2)
    if not onto_sphere:
        tau = torch.maximum(tau, -largest)  # a threshold of at least zero: never grow
    # Deviation D2 (PAPER.md): a sign that is never zero instead of sign(w + 1e-8).
    sign = torch.copysign(v.new_ones(()), v.detach())
    return sign * torch.relu(v.abs() - largest - tau)


def project_sphere(v: Tensor) -> Tensor:
    """Soft-threshold each row so that its norm ``sum_i max_t |v[t, i]|`` is exactly 1.

    Implements Alg. (2) for one piece, where it is the Euclidean projection
    ``argmin ||p - v||_2 subject to ||p||_1 = 1``; Implements Alg. (3) for two pieces (CReLU),
    and the same rule for any number. A zero row becomes ``1 / in`` everywhere.

    Parameters
    ----------
    v : Tensor of shape (..., pieces, in)

    Returns
    -------
    Tensor of shape (..., pieces, in)

    Examples
    --------
    >>> project_sphere(torch.tensor([[2.0, -1.5, 0.1]]))
    tensor([[ 0.7500, -0.2500,  0.0000]])
    """
    return _soft_threshold(v, onto_sphere=True)


def project_ball(v: Tensor) -> Tensor:
    """Soft-threshold each row whose norm ``sum_i max_t |v[t, i]|`` exceeds 1; leave the others.

    Implements the constraint of Pj (Section 4.3). For one piece it is
    ``argmin ||p - v||_2 subject to ||p||_1 <= 1``.

    Parameters
    ----------
    v : Tensor of shape (..., pieces, in)

    Returns
    -------
    Tensor of shape (..., pieces, in)

    Examples
    --------
    >>> project_ball(torch.tensor([[[2.0, -1.5, 0.1]], [[0.2, -0.3, 0.1]]]))
    tensor([[[ 0.7500, -0.2500,  0.0000]],
            [[ 0.2000, -0.3000,  0.1000]]])
    """
    # Rows of the ball come back to the last bit, not after a subtraction and an addition.
    inside = largest_piece(v).sum(dim=-1) <= 1
    return torch.where(inside[..., None, None], v, _soft_threshold(v, onto_sphere=False))


def projected_weight(v: Tensor, g: Tensor) -> Tensor:
    """Return ``w = g * project_sphere(v)``, the weight at the end of the pruning stage.

    Implements Eq. (4).

    Parameters
    ----------
    v : Tensor of shape (..., out, pieces, in)
    g : Tensor of shape (..., out) or (..., 1)

    Returns
    -------
    Tensor of shape (..., out, pieces, in)
    """
    return g[..., None, None] * project_sphere(v)
