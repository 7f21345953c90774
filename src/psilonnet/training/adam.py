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
        self._values = [p.detach() for p in self.parameters] if flat is None else [flat.values]
        self._moments = [[torch.zeros_like(value) for value in self._values] for _ in MOMENTS]
        owners = self.parameters if flat is None else flat.parameters
        views = self._moments if flat is None else [flat.views(lines[0]) for lines in self._moments]
        self.state = {
            owner: dict(zip(MOMENTS, own, strict=True))
            for owner, *own in zip(owners, *views, strict=True)
        }
        self._steps = torch.zeros((), device=self._values[0].device)

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
        if self.flat is not None:
            gradients: list[Tensor | None] = [self.flat.gradient]
        else:
            gradients = [p.grad for p in self.parameters]
        lists = zip(self._values, gradients, *self._moments, strict=True)
        known = [line for line in lists if line[1] is not None]
        self._steps += 1
        if known:
            values, slopes, first, second = zip(*known, strict=True)
            torch._fused_adam_(
                values,
                slopes,
                first,
                second,
                [],
                [self._steps] * len(known),
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
