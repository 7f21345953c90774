"""Adam, with a state that follows the members of a population."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.optim.adam import adam

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor


class Adam:
    """The fused Adam of torch, betas 0.9 and 0.999, without the class around it.

    ``torch.optim.Adam`` imports torch's compiler, in each process that trains: that takes about
    as long as importing torch. The arithmetic here is the same function, to the last bit.

    Attributes
    ----------
    state : dict of Tensor to dict
        ``exp_avg``, ``exp_avg_sq`` and ``step`` of each parameter that has had a gradient.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list(parameters)
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Change every parameter that has a gradient."""
        gradients = {p: p.grad for p in self.parameters if p.grad is not None}
        states = [self.state.get(p) or self._begin(p) for p in gradients]
        adam(
            list(gradients),
            list(gradients.values()),
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            lr=learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    def _begin(self, parameter: Tensor) -> dict[str, Tensor]:
        self.state[parameter] = {
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
            "step": torch.zeros((), device=parameter.device),
        }
        return self.state[parameter]

    def take(self, parameters: Iterable[Tensor], members: Tensor) -> Adam:
        """Return an Adam that goes on with some members, whose parameters these are."""
        taken = Adam(parameters)
        for old, new in zip(self.parameters, taken.parameters, strict=True):
            if old in self.state:
                taken.state[new] = {
                    name: value[members].clone() if value.dim() else value.clone()
                    for name, value in self.state[old].items()
                }
        return taken
