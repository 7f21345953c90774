"""Adam, with a state that follows the members of a population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from psilonnet.training.flat import Flat

MOMENTS = ("exp_avg", "exp_avg_sq")


class Adam:
    """The fused Adam of torch, betas 0.9 and 0.999, without the class around it.

    ``torch.optim.Adam`` imports torch's compiler, in each process that trains: that takes about
    as long as importing torch. The arithmetic here is the same kernel, to the last bit.

    Parameters
    ----------
    parameters : iterable of Parameter
    flat : Flat, optional
        The tensor that all of them are views of, with their gradients: then one pass does.

    Attributes
    ----------
    state : dict of Parameter to dict
        ``exp_avg`` and ``exp_avg_sq`` of each parameter.
    """

    def __init__(self, parameters: Iterable[Tensor], flat: Flat | None = None) -> None:
        self.parameters, self.flat = list(parameters), flat
        values = self.parameters if flat is None else [flat.values]
        self._moments = [[torch.zeros_like(value.detach()) for value in values] for _ in MOMENTS]
        owners = self.parameters if flat is None else flat.parameters
        views = self._moments if flat is None else [flat.views(lines[0]) for lines in self._moments]
        self.state = {
            owner: dict(zip(MOMENTS, own, strict=True))
            for owner, *own in zip(owners, *views, strict=True)
        }
        self._steps = torch.zeros((), device=values[0].device)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return int(self._steps)

    @steps.setter
    def steps(self, count: int) -> None:
        self._steps.fill_(count)

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Change every parameter that has a gradient."""
        self._steps += 1
        if self.flat is not None:
            first, second = self._moments
            self._change([self.flat.values], [self.flat.gradient], first, second, learning_rate)
            return
        lines = zip(self.parameters, *self._moments, strict=True)
        known = [(p.detach(), p.grad, *moments) for p, *moments in lines if p.grad is not None]
        values, gradients, first, second = (list(column) for column in zip(*known, strict=True))
        self._change(values, gradients, first, second, learning_rate)

    def _change(
        self,
        values: list[Tensor],
        gradients: list[Tensor],
        first: list[Tensor],
        second: list[Tensor],
        learning_rate: float,
    ) -> None:
        torch._fused_adam_(
            values,
            gradients,
            first,
            second,
            [],
            [self._steps] * len(values),
            lr=learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def take(
        self,
        parameters: Iterable[Tensor],
        members: Tensor | slice = slice(None),
        flat: Flat | None = None,
    ) -> Adam:
        """Return an Adam that goes on with some members, whose parameters these are."""
        taken = Adam(parameters, flat)
        taken.steps = self.steps
        for old, new in zip(self.parameters, taken.parameters, strict=True):
            for name in MOMENTS:
                taken.state[new][name].copy_(self.state[old][name][members])
        return taken
