"""A weighted average of networks of different shapes: the function that a fitted model is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from psilonnet.nn.maps import ColumnMap
from psilonnet.nn.network import Network
from psilonnet.nn.plain import PlainLayer, PlainNet, plain_net

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
    increasing : Tensor of shape (members, pieces, in), or None
        What is added to each network, of one output: so many times each piece of each input, as the
        first layer splits it. It makes a network monotone, see :class:`MonotoneNet`.
    """

    net: PlainNet
    weight: Tensor
    columns: ColumnMap
    inputs: Tensor
    increasing: Tensor | None = None

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

    def member(self, number: int) -> Part:
        """Return one network as a part with the weight 1."""
        own = slice(number, number + 1)
        term = None if self.increasing is None else self.increasing[own]
        weight = torch.ones(1, dtype=torch.float64)
        return replace(self, net=self.net.member(number), weight=weight, increasing=term)

    def summands(self) -> list[Part]:
        """Return parts without a term that sum to this one: the networks, and the term if any.

        The term is itself a network of one layer, which splits its inputs as the others do.
        """
        if self.increasing is None:
            return [self]
        networks, first = replace(self, increasing=None), self.net.layers[0]
        own = (self.increasing != 0).flatten(0, 1).any(dim=0).nonzero().flatten()
        if len(own) == 0:
            return [networks]
        edges = None if first.edges is None else first.edges[..., own]
        weight = self.increasing[..., own].unsqueeze(1)
        layer = PlainLayer(weight, weight.new_zeros(len(weight), 1), first.split, edges)
        net = PlainNet.of_layers([layer])
        return [networks, Part(net, self.weight, self.columns.at(own), self.inputs[own])]

    def see(self, x: Tensor) -> Tensor:
        """Map all encoded columns, of shape (rows, in), to what the networks see."""
        return self.columns(x if len(self.inputs) == x.shape[-1] else x[..., self.inputs])

    def __call__(self, x: Tensor) -> Tensor:
        """Map (rows, encoded columns) to the share in the average, (rows, out).

        Of a part without a term: see :meth:`summands`.
        """
        return torch.einsum("m,mro->ro", self.weight, self.net(self.see(x)))


class AveragedNet:
    """A weighted average of networks.

    Parameters
    ----------
    networks : sequence of Part
        Their weights sum to 1.
    columns : int
        The number of encoded columns.

    Attributes
    ----------
    networks : tuple of Part
        As given.
    parts : tuple of Part
        What is added up: the networks, and beside them the terms that make them monotone. None of
        these has a term of its own, so that whoever sums over the parts forgets nothing.

    Examples
    --------
    >>> net = AveragedNet.of(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)))
    >>> net(torch.zeros(5, 3)).shape
    torch.Size([5, 1])
    """

    def __init__(self, networks: Sequence[Part], columns: int) -> None:
        self.networks, self.columns = tuple(networks), columns
        self.parts = tuple(part for given in networks for part in given.summands())

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
        return sum(part.members for part in self.networks)

    @property
    def terms(self) -> int:
        """The number of functions that are added up."""
        return sum(part.members for part in self.parts)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return self.parts[0].net.layers[-1].weight.shape[1]

    def singles(self) -> list[AveragedNet]:
        """Return each network by itself, with the whole weight."""
        return [
            AveragedNet([part.member(number)], self.columns)
            for part in self.networks
            for number in range(part.members)
        ]

    def weighed(self, share: float) -> list[Part]:
        """Return the parts with a share of their weights, to be averaged with others."""
        return [replace(part, weight=part.weight * share) for part in self.networks]

    def __call__(self, x: Tensor) -> Tensor:
        """Map encoded columns, of shape (rows, in), to averaged outputs (rows, out) in float64."""
        first, *others = (part(x) for part in self.parts)
        return sum(others, first)
