"""How far each output can move when an input moves: the global bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.functional import path_matrix

if TYPE_CHECKING:
    from psilonnet.nn import Network

# More than the rounding of a few thousand float64 operations; it makes the bounds safe.
SAFETY = 1 + 1e-9


@torch.no_grad()
def input_bounds(net: Network) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return how far an output can move at most, for one unit of one input.

    If input j moves by d_j, output i moves by at most ``sum_j B[i, j] |d_j|``. The bound is the
    merged one, computed in float64 from the weights in use, not from lengths, and holds for every
    input. For a population it is the bound of the average of the members' outputs.

    Parameters
    ----------
    net : Network

    Returns
    -------
    ndarray of shape (outputs, inputs)
    """
    weights = [weight.double().cpu() for weight in net.weights()]
    bounds = path_matrix(weights, residual=net.residual, bound="merged")
    while bounds.dim() > 2:
        bounds = bounds.mean(dim=0)
    safe: np.ndarray[Any, np.dtype[np.float64]] = SAFETY * bounds.numpy()
    return safe
