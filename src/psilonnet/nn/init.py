"""Initialisation of Appendix C: orthogonal directions that look linear.

Lengths are 1, and 0 inside residual blocks; biases are 0. Both are set where a layer is made.
"""

import torch
from torch import Tensor


@torch.no_grad()
def orthogonal_(direction: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill ``direction`` in place with one random orthogonal matrix, the same for every piece.

    Implements App. (C), its initialisation. Equal pieces make a layer linear in what was split
    into them ("looks linear"). Each member draws a matrix of its own.

    Parameters
    ----------
    direction : Tensor of shape (*members, out, pieces, in)
    generator : torch.Generator, optional
        The source of randomness; the global one of torch if not given.

    Returns
    -------
    Tensor
        The same tensor.
    """
    if direction.is_meta:  # a shape without numbers, as loading makes them
        return direction
    *members, n_out, _, n_in = direction.shape
    shape = (*members, max(n_out, n_in), min(n_out, n_in))
    # In double precision, so that a net is the same function in both precisions.
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(normal)
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # uniform over orthogonal matrices
    matrix = q if n_out >= n_in else q.mT
    return direction.copy_(matrix.unsqueeze(-2))
