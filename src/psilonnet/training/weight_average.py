"""A moving average of the weights along a run: smoother than the weights of any one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from psilonnet.nn import Network

EVERY = 4  # steps between two that are taken in: neighbours differ little, and each is a pass


class WeightAverage:
    """The moving average ``a <- d a + (1 - d) w`` of the parameters of a population.

    Parameters
    ----------
    decay : float
        Per step. Every fourth step is taken in, with the decay of four steps. While the run is
        young the average is a plain one, so that it does not remember the start.

    Attributes
    ----------
    values : list of Tensor
        One for each parameter, from the first step on.
    taken : int
        How many steps were taken in.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay**EVERY
        self.values = list[Tensor]()
        self.taken = 0

    @torch.no_grad()
    def take_in(self, net: Network, step: int) -> None:
        """Take the weights of a step in, if it is time."""
        if step % EVERY and self.values:
            return
        if not self.values:
            self.values = [p.detach().clone() for p in net.parameters()]
        self.taken += 1
        share = max(1 - self.decay, 1 / self.taken)
        torch._foreach_lerp_(self.values, [p.detach() for p in net.parameters()], share)

    @torch.no_grad()
    def put_into(self, net: Network) -> Network:
        """Give a network the averaged weights, if there are any yet."""
        for parameter, value in zip(net.parameters(), self.values, strict=bool(self.values)):
            parameter.copy_(value)
        return net

    def keep(self, members: Tensor) -> None:
        """Go on with some of the members, by place."""
        self.values = [value[members] for value in self.values]
