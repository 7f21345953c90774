"""L1 (and L2) weight normalisation of rows that are split into pieces.

The norm of a row ``v`` of shape ``(pieces, in)`` is that of ``max_t |v[t, i]|`` as a vector
over i. With one piece it is the plain norm.
"""

import torch
from torch import Tensor
from torch.nn import functional

from psilonnet.functional.pieces import largest_piece
from psilonnet.functional.projection import projected_weight


def row_norm(v: Tensor, *, order: int = 1) -> Tensor:
    """Return ``|| max_t |v[t, .]| ||_order`` of each row.

    Ties between pieces share the gradient evenly.

    Parameters
    ----------
    v : Tensor of shape (..., pieces, in)
    order : {1, 2}

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> row_norm(torch.tensor([[1.0, -2.0], [-3.0, 0.5]]))
    tensor(5.)
    """
    if order not in (1, 2):
        raise ValueError(f"The 'order' of a row norm must be 1 or 2. Got {order!r} instead.")
    largest = largest_piece(v)
    if order == 1:
        return largest.sum(dim=-1)
    norm: Tensor = torch.linalg.vector_norm(largest, dim=-1)
    return norm


def divisor(norm: Tensor) -> Tensor:
    """Return the norm, or 1 for a zero row, which then stays zero with a finite gradient.

    Rows so small that their reciprocal would overflow count as zero.
    """
    return functional.threshold(norm, smallest_norm(norm.dtype), 1.0)  # in one operation


def smallest_norm(dtype: torch.dtype) -> float:
    """Return the norm up to which a row counts as zero."""
    numbers = torch.finfo(dtype)
    return numbers.tiny / numbers.eps


def normalized_weight(v: Tensor, g: Tensor, *, order: int = 1) -> Tensor:
    """Return ``w = g v / ||v||`` row by row.

    Implements Eq. (1), with the norm of Section 3.3 for several pieces. A zero row stays zero.

    Parameters
    ----------
    v : Tensor of shape (..., out, pieces, in)
    g : Tensor of shape (..., out), or (..., 1) for one length shared by all rows
    order : {1, 2}

    Returns
    -------
    Tensor of shape (..., out, pieces, in)

    Examples
    --------
    >>> normalized_weight(torch.tensor([[[1.0, -3.0]]]), torch.tensor([2.0]))
    tensor([[[ 0.5000, -1.5000]]])
    """
    scale = g / divisor(row_norm(v, order=order))  # (..., out)
    return v * scale[..., None, None]


def oblique_project(w: Tensor, x: Tensor) -> Tensor:
    """Return ``M_w x = x - grad||w|| (w . x) / ||w||``, which is orthogonal to w.

    Implements Eq. (2): the gradient of ``g v / ||v|| . x`` in v is ``g / ||v|| M_w x``. With
    one piece ``grad||w||`` is ``sign(w)``.

    Parameters
    ----------
    w, x : Tensor of shape (..., pieces, in)

    Returns
    -------
    Tensor of shape (..., pieces, in)

    Examples
    --------
    >>> oblique_project(torch.tensor([[1.0, -1.0]]), torch.tensor([[3.0, 1.0]]))
    tensor([[2., 2.]])
    """
    dot = (w * x).sum(dim=(-2, -1)) / divisor(row_norm(w))
    return x - norm_gradient(w) * dot[..., None, None]


def norm_gradient(v: Tensor, *, order: int = 1) -> Tensor:
    """Return the gradient of the row norm: in the largest piece of each coordinate, shared at ties.

    There it is ``sign(v)`` for the L1 norm and ``v / ||v||`` for the L2 norm.
    """
    magnitude = v.abs()
    largest = magnitude == magnitude.amax(dim=-2, keepdim=True)
    share = largest.to(v.dtype) / largest.sum(dim=-2, keepdim=True)
    if order == 1:
        return v.sign() * share
    return v * share / divisor(row_norm(v, order=order))[..., None, None]


def mixed_weight(v: Tensor, g: Tensor, prune_mix: Tensor | float) -> Tensor:
    """Return ``(1 - a) g v / ||v||_1 + a g Proj(v)`` with ``a = prune_mix``.

    Implements Eq. (5). Each row has norm ``|g|`` for every mix between 0 and 1 (a zero row:
    ``a |g|``), and is exactly sparse at 1.

    Parameters
    ----------
    v : Tensor of shape (..., out, pieces, in)
    g : Tensor of shape (..., out) or (..., 1)
    prune_mix : number or 0-d Tensor in [0, 1]

    Returns
    -------
    Tensor of shape (..., out, pieces, in)
    """
    # >>> Eq. (5)
    return normalized_weight(v, (1 - prune_mix) * g) + projected_weight(v, prune_mix * g)
    # <<<
