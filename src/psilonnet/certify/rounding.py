"""How far rounded arithmetic can stray from exact arithmetic, as a bound computed in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

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


def open_ends(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ends of intervals; one that overflowed excludes nothing."""
    return low.nan_to_num(*[-torch.inf] * 3), high.nan_to_num(*[torch.inf] * 3)


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
