"""PSiLON Net: the multi-layer perceptron whose path norm is a product of K numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from psilonnet.nn.crelu import CReLULinear
from psilonnet.nn.network import Network, check_depth, first_layer, last_settings
from psilonnet.nn.pieces import ReLULinear

if TYPE_CHECKING:
    from torch import Tensor
    from typing_extensions import Unpack

    from psilonnet.nn.linear import LayerSettings


class PSiLONNet(Network):
    """A multi-layer perceptron of normalised layers.

    Implements Eq. (6), ``W_K s(W_{K-1} s(... s(W_1 x)))`` with biases and without the final
    nonlinearity, which belongs to the loss.

    Parameters
    ----------
    in_features, out_features : int
    width, depth : int
        Neurons in a hidden layer, and the number of hidden layers (K - 1).
    activation : {"relu", "crelu"}
    edges : Tensor of shape (pieces - 1, in_features), optional
        Knots at which each input column is split.
    **settings
        As in :class:`NormalizedLinear`; the lengths of the last layer are never shared.

    Examples
    --------
    >>> import torch
    >>> net = PSiLONNet(10, 1, width=32, depth=2)
    >>> net(torch.zeros(5, 10)).shape
    torch.Size([5, 1])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        width: int = 500,
        depth: int = 3,
        activation: Literal["relu", "crelu"] = "relu",
        edges: Tensor | None = None,
        **settings: Unpack[LayerSettings],
    ) -> None:
        layers = {"relu": ReLULinear, "crelu": CReLULinear}
        if activation not in layers:
            raise ValueError(
                f"The 'activation' parameter of PSiLONNet must be one of {sorted(layers)}. "
                f"Got {activation!r} instead."
            )
        check_depth("PSiLONNet", depth)
        layer = layers[activation]
        super().__init__(
            first_layer(in_features, width, edges, settings),
            *(layer(width, width, **settings) for _ in range(depth - 1)),
            layer(width, out_features, **last_settings(settings)),
        )
