"""Parameters of a population as views into one tensor, with a line for each member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn


class Flat:
    """Parameters with a leading member axis, moved into one tensor.

    Parameters
    ----------
    parameters : sequence of Parameter, each of shape (members, ...)
        They keep their values and become views of ``values``, in this order.
    outputs_last : Parameter, optional
        The one among them whose second axis comes last in memory.

    Attributes
    ----------
    values, gradient : Tensor of shape (members, numbers of a member)
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], outputs_last: nn.Parameter | None = None
    ) -> None:
        self.parameters = list(parameters)
        self._moved = [p is outputs_last for p in parameters]
        self._shapes = [self._in_memory(p).shape for p in range(len(self.parameters))]
        lines = [self._in_memory(p).flatten(1) for p in range(len(self.parameters))]
        self.values = torch.cat(lines, dim=1)
        self.gradient = torch.zeros_like(self.values)
        for parameter, value in zip(parameters, self.views(self.values), strict=True):
            parameter.data = value
        self._places = [parameter.data_ptr() for parameter in parameters]

    def _in_memory(self, place: int) -> Tensor:
        parameter = self.parameters[place].detach()
        return parameter.movedim(1, -1) if self._moved[place] else parameter

    def views(self, lines: Tensor) -> list[Tensor]:
        """Return the part of each parameter in a tensor of the same shape as the values."""
        parts = lines.split_with_sizes([shape[1:].numel() for shape in self._shapes], dim=1)
        places = zip(parts, self._shapes, self._moved, strict=True)
        shaped = ((part.view(shape), moved) for part, shape, moved in places)
        return [part.movedim(-1, 1) if moved else part for part, moved in shaped]

    @property
    def both(self) -> tuple[Tensor, Tensor]:
        """The values and the gradient."""
        return self.values, self.gradient

    def holds_all(self) -> bool:
        """Whether every parameter is still a view of the values: one may have been given others."""
        places = zip(self.parameters, self._places, strict=True)
        return all(parameter.data_ptr() == place for parameter, place in places)

    def release(self) -> None:
        """Give every parameter memory of its own again."""
        for parameter in self.parameters:
            parameter.data = parameter.detach().clone(memory_format=torch.contiguous_format)
