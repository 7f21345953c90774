"""A weighted average of networks of different shapes: the function that a fitted model is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from psilonnet.nn.maps import ColumnMap
from psilonnet.nn.network import Network
from psilonnet.nn.plain import PlainNet, plain_net

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Part:
    """Networks of one shape that see the columns in the same way.

    Attributes
    ----------
    net : PlainNet
        In float64; those of a fitted model hold numbers of float32.
    weight : Tensor of shape (members,), in float64
        The share of each network in the average.
    columns : ColumnMap
        Of the inputs that are read.
    inputs : Tensor of shape (in,)
        Which of the encoded columns are read, in increasing order.
    """

    net: PlainNet
    weight: Tensor
    columns: ColumnMap
    inputs: Tensor

    def __post_init__(self) -> None:
        if bool((self.inputs.diff() <= 0).any()):
            raise ValueError(
                "The columns that a part reads must be given in increasing order. Got "
                f"{self.inputs.tolist()}."
            )

    @property
    def members(self) -> int:
        """The number of networks."""
        return len(self.weight)

    def see(self, x: Tensor) -> Tensor:
        """Map all encoded columns, of shape (rows, in), to what the networks see."""
        return self.columns(x if len(self.inputs) == x.shape[-1] else x[..., self.inputs])

    def __call__(self, x: Tensor) -> Tensor:
        """Map (rows, encoded columns) to the share in the average, (rows, out)."""
        return torch.einsum("m,mro->ro", self.weight, self.net(self.see(x)))


class AveragedNet:
    """A weighted average of networks.

    Parameters
    ----------
    parts : sequence of Part
        Their weights sum to 1.
    columns : int
        The number of encoded columns.

    Examples
    --------
    >>> net = AveragedNet.of(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    >>> net(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(self, parts: Sequence[Part], columns: int) -> None:
        self.parts, self.columns = tuple(parts), columns

    @classmethod
    def of(cls, net: nn.Sequential | PlainNet | AveragedNet) -> AveragedNet:
        """Return networks that see the columns as they are; members are averaged plainly."""
        if isinstance(net, AveragedNet):
            return net
        if not isinstance(net, PlainNet):
            net = plain_net(net) if isinstance(net, Network) else PlainNet(net)
        members, inputs = len(net.layers[0].weight), net.layers[0].weight.shape[-1]
        weight = torch.full((members,), 1 / members, dtype=torch.float64)
        return cls([Part(net, weight, ColumnMap.identity(inputs), torch.arange(inputs))], inputs)

    @property
    def members(self) -> int:
        """The number of networks."""
        return sum(part.members for part in self.parts)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self.parts[0].net.layers[-1].weight.shape[1]

    def weighed(self, share: float) -> list[Part]:
        """Return the parts with a share of their weights, to be averaged with others."""
        return [replace(part, weight=part.weight * share) for part in self.parts]

    def __call__(self, x: Tensor) -> Tensor:
        """Map encoded columns, of shape (rows, in), to averaged outputs (rows, out) in float64."""
        first, *others = (part(x) for part in self.parts)
        return sum(others, first)
