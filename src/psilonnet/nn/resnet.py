"""PSiLON ResNet: residual blocks on CReLU whose improved bound is a product of K numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.nn.crelu import CReLUBlock, CReLULinear
from psilonnet.nn.network import Network, check_depth, first_layer, last_settings

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

    from psilonnet.nn.linear import LayerSettings


class PSiLONResNet(Network):
    """A CReLU residual network: a linear map, residual blocks, CReLU and a last linear map.

    Implements Def. (2), without the final nonlinearity, which belongs to the loss. At
    initialisation it is an affine map.

    Parameters
    ----------
    in_features, out_features : int
    width, depth : int
        Neurons in a hidden layer, and the number of hidden layers (K - 1): one linear map and
        ``depth - 1`` residual blocks.
    edges : Tensor of shape (pieces - 1, in_features), optional
        Knots at which each input column is split.
    **settings
        As in :class:`NormalizedLinear`; the lengths of the last layer are never shared.

    Examples
    --------
    >>> import torch
    >>> net = PSiLONResNet(10, 3, width=32, depth=5)
    >>> net(torch.zeros(5, 10)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        width: int = 500,
        depth: int = 10,
        edges: Tensor | None = None,
        **settings: Unpack[LayerSettings],
    ) -> None:
        check_depth("PSiLONResNet", depth)
        super().__init__(
            first_layer(in_features, width, edges, settings),
            *(CReLUBlock(width, **settings) for _ in range(depth - 1)),
            CReLULinear(width, out_features, **last_settings(settings)),
        )
