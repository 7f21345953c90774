"""What a network sees of encoded columns: an increasing map of each one that holds numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

Bend = Literal["identity", "log_tails", "clipped"]

BEND = 3.0  # from about here on numbers grow like a logarithm, or are clipped


@dataclass(frozen=True)
class ColumnMap:
    """The map ``h((z - center) / scale) - h(-center / scale)`` of bent columns, else ``z``.

    h is increasing, and at most as steep as the identity: ``u``, or ``3 asinh(u / 3)`` for
    "log_tails", or ``u / sqrt(1 + (u / 3)^2)`` for "clipped". What is 0 stays 0: a missing number
    is the same for every map.

    Attributes
    ----------
    bend : {"identity", "log_tails", "clipped"}
    bent : Tensor of bool of shape (in,)
        Which columns are mapped: numbers, not columns of 0 and 1.
    center, scale : Tensor of shape (in,), in float64
        Of bent columns; 0 and 1 for the others.

    Examples
    --------
    >>> bent = torch.tensor([True, False])
    >>> ColumnMap.of("clipped", bent)(torch.tensor([[30.0, 30.0]], dtype=torch.float64))
    tensor([[ 2.9851, 30.0000]], dtype=torch.float64)
    """

    bend: Bend
    bent: Tensor
    center: Tensor
    scale: Tensor

    def __post_init__(self) -> None:
        if self.bend not in get_args(Bend):
            raise ValueError(f"A map must be one of {get_args(Bend)}. Got {self.bend!r}.")
        numbers = bool((self.center.isfinite() & self.scale.isfinite()).all())
        if not numbers or not bool((self.scale > 0).all()):
            raise ValueError("The centers and scales of a map must be finite, and scales above 0.")

    @classmethod
    def of(
        cls, bend: Bend, bent: Tensor, center: Tensor | None = None, scale: Tensor | None = None
    ) -> ColumnMap:
        """Return a map, with centers 0 and scales 1 if none are given."""
        zero = torch.zeros(len(bent), dtype=torch.float64)
        center = zero if center is None else torch.where(bent, center.double(), 0.0)
        scale = zero + 1 if scale is None else torch.where(bent, scale.double(), 1.0)
        return cls(bend, bent, center, scale)

    @classmethod
    def identity(cls, inputs: int) -> ColumnMap:
        """Return the map that leaves all columns as they are."""
        return cls.of("identity", torch.zeros(inputs, dtype=torch.bool))

    @property
    def slope(self) -> Tensor:
        """The largest slope of each column, of shape (in,)."""
        return 1 / self.scale

    def at(self, inputs: Tensor) -> ColumnMap:
        """Return the map of some columns."""
        return ColumnMap(self.bend, self.bent[inputs], self.center[inputs], self.scale[inputs])

    def __call__(self, z: Tensor) -> Tensor:
        """Map (..., in) to (..., in), in float64."""
        z = z.double()
        if self.bend == "identity" or not bool(self.bent.any()):
            return z
        mapped = self._bent((z - self.center) / self.scale) - self._bent(-self.center / self.scale)
        return torch.where(self.bent, mapped, z)

    def _bent(self, u: Tensor) -> Tensor:
        if self.bend == "log_tails":
            return BEND * torch.asinh(u / BEND)
        return u / torch.hypot(torch.ones_like(u), u / BEND)
