"""What is proven about encoded rows: each method is asked about what the cheaper ones left open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.certify.branching import falls_less_by_cases
from psilonnet.certify.combinations import both_ways, class_margins
from psilonnet.certify.forward_error import forward_error

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.certify.box import Box
    from psilonnet.certify.combinations import Combinations
    from psilonnet.certify.methods import Method
    from psilonnet.nn import AveragedNet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Proof:
    """What is proven about some encoded rows.

    Attributes
    ----------
    net : AveragedNet
    x : Tensor of shape (rows, in)
    box : Box
        What may move; for a radius, whatever may move at all.
    methods : tuple of Method
        The cheapest first.
    reading_error : float
        How far reading a cell can move an encoded number.
    """

    net: AveragedNet
    x: Tensor
    box: Box
    methods: tuple[Method, ...]
    reading_error: float

    @cached_property
    def outputs(self) -> Tensor:
        """The averaged outputs, of shape (rows, outputs)."""
        return self.net(self.x)

    def output_moves(self) -> tuple[Array, Array, Array]:
        """Return the outputs, and how far each can move down and up."""
        rows, n = self.outputs.shape
        falls = self.falls(both_ways(rows, n)).numpy()
        return self.outputs.numpy(), falls[:, :n], falls[:, n:]

    def largest_margins(self) -> Array:
        """Return the largest margin of every class over each other one."""
        found = []
        for k in range(max(2, self.outputs.shape[1])):
            margins, asked = class_margins(self.outputs, torch.full((len(self.x),), k))
            found.append(margins + self.falls(asked.opposite))
        return torch.stack(found, dim=1).numpy()

    def is_robust(self) -> Array:
        """Return True where no margin can be used up."""
        margins, asked = class_margins(self.outputs)
        return np.asarray((self.falls(asked, margins) < margins).all(dim=-1))

    def moves_less(self, enough: Tensor) -> Array:
        """Return True where every output moves by less than enough, down and then up."""
        falls = self.falls(both_ways(*self.outputs.shape), enough)
        return np.asarray((falls < enough).all(dim=-1))

    def holds_by_cases(self, enough: Tensor | None, budget: int) -> bool:
        """Return whether no output of any row moves by enough; without it, whether classes stay."""
        if enough is None:
            enough, asked = class_margins(self.outputs)
        else:
            asked = both_ways(*self.outputs.shape)
        exact = enough - self.slack(self.box.hull, asked)
        held = falls_less_by_cases(self.net, self.x, self.box, asked, exact, budget)
        return bool(held.all())

    def slack(self, radius: Tensor, asked: Combinations) -> Tensor:
        """Return the rounding of two predictions, of shape (rows, count)."""
        error = forward_error(self.net, self.x, radius.amax(dim=-1))
        return 2 * error.unsqueeze(-1) * asked.table.abs().sum(dim=-1)[asked.index]

    def falls(self, asked: Combinations, enough: Tensor | None = None) -> Tensor:
        """Return how far computed combinations of outputs can fall, of shape (rows, count).

        Parameters
        ----------
        asked : Combinations
        enough : Tensor of shape (rows, count), optional
            A row whose falls are all proven to be smaller is not looked at again.
        """
        slack = self.slack(self.box.hull, asked)
        found = torch.full_like(slack, torch.inf)
        left = torch.arange(len(slack))
        for method in self.methods:
            fall = method.falls(self.net, self.x[left], self.box.at(left), asked.at(left))
            found[left] = torch.minimum(found[left], fall + slack[left])
            if enough is not None:
                left = (found >= enough).any(dim=-1).nonzero().squeeze(1)
            if not len(left):
                break
        return found
