"""The largest piece of each coordinate, on which norms, bounds and projections rest."""

import torch
from torch import Tensor


def largest_piece(v: Tensor) -> Tensor:
    """Return ``max_t |v[t, .]|``; ties share the gradient evenly.

    Parameters
    ----------
    v : Tensor of shape (..., pieces, in)

    Returns
    -------
    Tensor of shape (..., in)

    Examples
    --------
    >>> largest_piece(torch.tensor([[1.0, -2.0], [-3.0, 0.5]]))
    tensor([3., 2.])
    """
    magnitude = v.abs()
    if v.shape[-2] == 1:
        return magnitude.squeeze(-2)
    if v.shape[-2] == 2:
        return torch.maximum(*magnitude.unbind(-2))  # several times faster than amax
    return magnitude.amax(dim=-2)
