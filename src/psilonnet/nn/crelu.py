"""Layers on concatenated ReLU, plain and residual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from psilonnet.functional import crelu
from psilonnet.nn.linear import LayerSettings, NormalizedLinear

if TYPE_CHECKING:
    from typing_extensions import Unpack


class CReLULinear(NormalizedLinear):
    """The map ``W+ max(z, 0) + W- min(z, 0) + b``.

    Parameters as :class:`NormalizedLinear` with two pieces.

    Examples
    --------
    >>> import torch
    >>> CReLULinear(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, in_features: int, out_features: int, **settings: Unpack[LayerSettings]
    ) -> None:
        super().__init__(in_features, out_features, 2, **settings)

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        return super().forward(crelu(z).flatten(-2))


class CReLUBlock(CReLULinear):
    """The residual block ``z + W+ max(z, 0) + W- min(z, 0) + b``.

    Implements Eq. (9) and, as it is computed, Implements Eq. (10). Its length starts at 0, so
    the block starts as the identity.

    Parameters
    ----------
    features : int
    **settings
        As in :class:`NormalizedLinear`.

    Examples
    --------
    >>> import torch
    >>> z = torch.tensor([[1.0, -2.0]])
    >>> CReLUBlock(2)(z).equal(z)
    True
    """

    residual = True

    def __init__(self, features: int, **settings: Unpack[LayerSettings]) -> None:
        super().__init__(features, features, **settings)

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., features) to (..., features)."""
        # >>> Eq. (10)
        return z + super().forward(z)
        # <<<
