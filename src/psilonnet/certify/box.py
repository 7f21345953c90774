"""The set of encoded rows around a row that a proof is about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]


class Jump(NamedTuple):
    """Columns that may take any of some states: places of shape (k,), states of shape (n, k)."""

    places: Array
    states: Array


@dataclass(frozen=True)
class Box:
    """How far the encoded columns may move around each row.

    Attributes
    ----------
    radius : Tensor of shape (rows, in)
        How far each encoded column may move continuously.
    jumps : tuple of Jump
        Groups of columns that may besides jump from any of some states to any other.
    """

    radius: Tensor
    jumps: tuple[Jump, ...] = ()

    @classmethod
    def of(cls, radius: Any, jumps: Sequence[Jump] = ()) -> Box:
        """Return a box in float64."""
        return cls(torch.as_tensor(radius, dtype=torch.float64), tuple(jumps))

    @property
    def hull(self) -> Tensor:
        """The radius of a box without jumps that holds this one."""
        radius = self.radius.clone()
        for jump in self.jumps:
            radius[:, jump.places] = float(np.ptp(jump.states))
        return radius

    def at(self, rows: slice | Tensor) -> Box:
        """Return the box of some rows."""
        return replace(self, radius=self.radius[rows])
