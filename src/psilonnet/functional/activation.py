"""Activations that split each coordinate into complementary pieces.

Every function maps ``z`` of shape ``(..., n)`` to pieces of shape ``(..., pieces, n)`` with

    sum_t |phi_t(a) - phi_t(b)| <= |a - b|        for all numbers a, b,

so together they move no farther than the coordinate. All bounds of this library rest on that.
At a kink the gradients of the pieces add up to at most one as well.
"""

import torch
from torch import Tensor


def relu(z: Tensor) -> Tensor:
    """Return ``max(z, 0)`` as a single piece.

    Parameters
    ----------
    z : Tensor of shape (..., n)

    Returns
    -------
    Tensor of shape (..., 1, n)
    """
    return torch.relu(z).unsqueeze(-2)


def crelu(z: Tensor) -> Tensor:
    """Return the two pieces ``max(z, 0)`` and ``min(z, 0)``, which sum to ``z``.

    Implements the CReLU of Section 3.1.

    Parameters
    ----------
    z : Tensor of shape (..., n)

    Returns
    -------
    Tensor of shape (..., 2, n)

    Examples
    --------
    >>> crelu(torch.tensor([3.0, -2.0]))
    tensor([[ 3.,  0.],
            [ 0., -2.]])
    """
    return torch.stack((torch.relu(z), z.clamp(max=0)), dim=-2)


def knots(x: Tensor, edges: Tensor) -> Tensor:
    """Split each coordinate at its own edges into pieces that vanish at 0 and sum to ``x``.

    Piece t is ``clip(x, k_t, k_{t+1}) - clip(0, k_t, k_{t+1})``, where the first and the last
    piece are unbounded (``k_0 = -inf``, ``k_s = inf``). A linear map behind the pieces is a
    piecewise linear function of every coordinate.

    Parameters
    ----------
    x : Tensor of shape (..., n)
    edges : Tensor of shape (pieces - 1, n), or with leading axes that broadcast against x
        Finite and non-decreasing along the axis of pieces. Equal edges make an empty piece.

    Returns
    -------
    Tensor of shape (..., pieces, n)

    Examples
    --------
    >>> knots(torch.tensor([3.0]), torch.tensor([[-1.0], [2.0]]))
    tensor([[0.],
            [2.],
            [1.]])
    """
    unbounded = edges.new_full((*edges.shape[:-2], 1, edges.shape[-1]), torch.inf)
    lower = torch.cat((-unbounded, edges), dim=-2)  # (pieces, n)
    upper = torch.cat((edges, unbounded), dim=-2)
    x = x.unsqueeze(-2)
    # Unlike clamp, this gives an edge to one piece only, as CReLU does, and never to an empty one.
    clipped = torch.where(x <= lower, lower, torch.where(x > upper, upper, x))
    return clipped - torch.zeros_like(lower).clamp(lower, upper)
