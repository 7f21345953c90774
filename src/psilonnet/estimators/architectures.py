"""The words for architectures, and the networks they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psilonnet.nn import PSiLONNet, PSiLONResNet

if TYPE_CHECKING:
    from psilonnet.nn import Network

ARCHITECTURES = ("mlp", "crelu", "resnet")


def make_network(architecture: str, inputs: int, outputs: int, **shape: Any) -> Network:
    """Return a network in float32, also where torch's default is float64.

    ``shape`` is as for :class:`PSiLONNet` without the activation.
    """
    if architecture == "resnet":
        return PSiLONResNet(inputs, outputs, **shape).float()
    activation: Any = "relu" if architecture == "mlp" else "crelu"
    return PSiLONNet(inputs, outputs, activation=activation, **shape).float()
