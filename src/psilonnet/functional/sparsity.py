"""Sparsity of weight vectors: exact, and its continuous extension."""

import torch
from torch import Tensor


def near_sparsity(v: Tensor) -> Tensor:
    """Return ``1 - exp(H(p)) / d`` with ``p = |v| / ||v||_1`` and H the entropy.

    Implements Def. (1). A zero vector has near-sparsity 1; a bit vector its exact sparsity.

    Parameters
    ----------
    v : Tensor of shape (..., d)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> near_sparsity(torch.tensor([1.0, 0.0, 0.0, 1.0]))
    tensor(0.5000)
    """
    magnitude = v.abs()
    total = magnitude.sum(dim=-1, keepdim=True)
    p = magnitude / torch.where(total == 0, 1, total)
    # 0 ln 0 = 0, with a finite gradient too.
    effective = torch.exp(-(p * torch.where(p > 0, p, 1).log()).sum(dim=-1))
    # >>> Eq. (3)
    return torch.where(total.squeeze(-1) == 0, 1.0, 1 - effective / v.shape[-1])
    # <<<


def exact_sparsity(v: Tensor) -> Tensor:
    """Return the share of entries that are exactly zero.

    Implements the exact sparsity of Section 2.1.

    Parameters
    ----------
    v : Tensor of shape (..., d)

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> exact_sparsity(torch.tensor([0.3, 0.0, 0.0, -2.0]))
    tensor(0.5000)
    """
    return (v == 0).mean(dim=-1, dtype=v.dtype)
