"""The paper's networks, one row of data each (Sections 4.1 to 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from psilonnet.nn.mlp import PSiLONNet
from psilonnet.nn.penalty import path_norm_penalty, weight_decay_penalty
from psilonnet.nn.resnet import PSiLONResNet

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from psilonnet.nn.linear import Length, Normalization
    from psilonnet.nn.network import Network


@dataclass(frozen=True)
class Variant:
    """A network of the paper: what it is made of, what is penalised and how it is trained."""

    network: type[PSiLONNet | PSiLONResNet]
    normalization: Normalization
    length: Length
    regularizer: Literal["improved", "original", "weight_decay"]
    training: Literal["gradient", "projected"] = "gradient"

    @property
    def penalty(self) -> Callable[[Network], Tensor]:
        """The penalty of a net of this variant, a function of the net of shape (*members)."""
        if self.regularizer == "weight_decay":
            return weight_decay_penalty
        if self.regularizer == "improved":
            return path_norm_penalty
        return partial(path_norm_penalty, bound=self.regularizer)


VARIANTS: dict[str, Variant] = {
    "P-Net": Variant(PSiLONNet, "l1", "shared", "improved"),
    "S-Net": Variant(PSiLONNet, "l2", "per_row", "weight_decay"),
    "S-Net without WN": Variant(PSiLONNet, "none", "none", "weight_decay"),
    "P-ResNet": Variant(PSiLONResNet, "l1", "shared", "improved"),
    "L1-IB-ResNet": Variant(PSiLONResNet, "l1", "per_row", "improved"),
    "L2-IB-ResNet": Variant(PSiLONResNet, "l2", "per_row", "improved"),
    "L1-OB-ResNet": Variant(PSiLONResNet, "l1", "per_row", "original"),
    "L2-OB-ResNet": Variant(PSiLONResNet, "l2", "per_row", "original"),
    "S-ResNet": Variant(PSiLONResNet, "l2", "per_row", "weight_decay"),
    "Pj-ResNet": Variant(PSiLONResNet, "ball", "shared", "improved", "projected"),
}


def make_net(variant: str, in_features: int, out_features: int, **settings: Any) -> Network:
    """Return a new network of one of the paper's variants.

    Parameters
    ----------
    variant : str
        A key of ``VARIANTS``.
    in_features, out_features : int
    **settings
        As in :class:`PSiLONNet` or :class:`PSiLONResNet`: width, depth, members and so on.

    Returns
    -------
    Network

    Examples
    --------
    >>> make_net("P-ResNet", 10, 3, width=16, depth=4).residual
    (False, True, True, True, False)
    """
    if variant not in VARIANTS:
        raise ValueError(f"The 'variant' must be one of {sorted(VARIANTS)}. Got {variant!r}.")
    row = VARIANTS[variant]
    if fixed := sorted({"normalization", "length"} & settings.keys()):
        raise ValueError(
            f"The variant {variant!r} sets {' and '.join(fixed)} itself: leave it out."
        )
    settings |= {"normalization": row.normalization, "length": row.length}
    return row.network(in_features, out_features, **settings)
