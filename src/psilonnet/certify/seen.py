"""A box of encoded columns as the networks of a part see it, behind their map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.certify.rounding import LOST, gamma, inflated, without_nan

if TYPE_CHECKING:
    from psilonnet.nn import ColumnMap, Part


@dataclass(frozen=True)
class SeenBox:
    """What networks see of a box, each of shape (rows, in).

    Attributes
    ----------
    x : Tensor
        The rows, mapped; rounded.
    radius : Tensor
        How far a mapped row can move within the box, in exact arithmetic.
    rounding : Tensor
        By how much a mapped value, computed anywhere in the box, can differ from the exact one.
    """

    x: Tensor
    radius: Tensor
    rounding: Tensor

    @property
    def size(self) -> Tensor:
        """The largest computed value in the box."""
        return self.x.abs() + self.radius + 2 * self.rounding


def seen_box(part: Part, x: Tensor, radius: Tensor) -> SeenBox:
    """Map boxes around rows by their ends, rounded outward: the map of a part is increasing.

    A move is never taken for more than the steepest slope of the map would make of it.

    Parameters
    ----------
    part : Part
    x, radius : Tensor of shape (rows, encoded columns)
    """
    x, radius = x[:, part.inputs], radius[:, part.inputs]
    columns = part.columns
    if not columns.bends:
        return SeenBox(x, radius, torch.zeros_like(x))
    spread = radius + (x.abs() + radius) * gamma(3) + LOST
    here, low, high = columns(x), columns(x - spread), columns(x + spread)
    ends = columns.rounding(x - spread), columns.rounding(x + spread)
    rounding = torch.maximum(*ends)  # the largest in the box is at one of them
    # The bounds cover the rounding of the differences as well.
    reached = torch.maximum(high - here, here - low) + 2 * rounding
    moved = torch.minimum(without_nan(reached), steepest(columns, radius))
    return SeenBox(here, torch.where(columns.bent, moved, radius), rounding)


def steepest(columns: ColumnMap, radius: Tensor) -> Tensor:
    """Return no less than the steepest slope of a map times a radius."""
    return inflated(radius / columns.scale, 2) + LOST * radius.sign()
