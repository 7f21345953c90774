"""What a network sees of encoded columns: an increasing map of each one that holds numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

Bend = Literal["identity", "log_tails", "clipped"]

BEND = 3.0  # from about here on numbers grow like a logarithm, or are clipped
FARTHEST = 1e150  # beyond, libraries do not say how well they compute the functions used here
ROUNDED = 16 * 2.0**-53  # of the values of h, at most
LOST = 2.0**-1000  # more than underflow takes away
# No less than the second derivative of h: 2 / (9 sqrt(3)), and (4 / 5)^(5 / 2) / 2.
CURVATURE = {"identity": 0.0, "log_tails": 0.1284, "clipped": 0.2863}


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
        Of bent columns; 0 and 1 for the others, and for all columns of an identity.

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
        stays = ~self.bent if self.bend != "identity" else torch.ones_like(self.bent)
        if not bool(((self.center == 0) & (self.scale == 1))[stays].all()):
            raise ValueError(
                "A column that a map leaves as it is must have the center 0 and the scale 1: its "
                f"slope is taken for one over the scale. Got {self.center[stays].tolist()} and "
                f"{self.scale[stays].tolist()}."
            )

    @classmethod
    def of(
        cls, bend: Bend, bent: Tensor, center: Tensor | None = None, scale: Tensor | None = None
    ) -> ColumnMap:
        """Return a map; centers are 0 and scales 1 if none are given, and for an identity."""
        zero = torch.zeros(len(bent), dtype=torch.float64)
        moved = bent if bend != "identity" else torch.zeros_like(bent)
        center = zero if center is None else torch.where(moved, center.double(), 0.0)
        scale = zero + 1 if scale is None else torch.where(moved, scale.double(), 1.0)
        return cls(bend, bent, center, scale)

    @classmethod
    def identity(cls, inputs: int) -> ColumnMap:
        """Return the map that leaves all columns as they are."""
        return cls.of("identity", torch.zeros(inputs, dtype=torch.bool))

    @property
    def bends(self) -> bool:
        """Whether some column is not left as it is."""
        return self.bend != "identity" and bool(self.bent.any())

    @property
    def slope(self) -> Tensor:
        """The largest slope of each column, of shape (in,)."""
        return 1 / self.scale

    @property
    def curvature(self) -> Tensor:
        """No less than the second derivative of each column, of shape (in,)."""
        return torch.where(self.bent, CURVATURE[self.bend], 0.0) / self.scale**2 * (1 + 2.0**-40)

    def at(self, inputs: Tensor) -> ColumnMap:
        """Return the map of some columns."""
        return ColumnMap(self.bend, self.bent[inputs], self.center[inputs], self.scale[inputs])

    def __call__(self, z: Tensor) -> Tensor:
        """Map (..., in) to (..., in), in float64."""
        z = z.double()
        if not self.bends:
            return z
        mapped, zero = self._terms(z)
        return torch.where(self.bent, mapped - zero, z)

    def inverse(self, seen: Tensor) -> Tensor:
        """Return about what is seen as given values, of shape (..., in); NaN where nothing is."""
        if not self.bends:
            return seen
        h = seen + self._bent(-self.center / self.scale)
        t = h / BEND
        u = BEND * torch.sinh(t) if self.bend == "log_tails" else h / torch.sqrt(1 - t * t)
        return torch.where(self.bent, self.center + self.scale * u, seen)

    def rounding(self, z: Tensor) -> Tensor:
        """Return by how much computed values can differ from exact ones, of the shape of z.

        h vanishes at 0, and its slope falls on both sides. So a relative error of its argument
        makes no larger one of its value, and all roundings together are at most 9 units of 2^-53
        of ``|h((z - center) / scale)| + |h(-center / scale)|``: two of the argument, one of its
        third, four of asinh or hypot, one of what follows, one of the difference. Here it is 16,
        so that the difference of two mapped numbers is covered by the sum of their bounds. Where
        an argument is beyond 1e150 nothing is known, and the bound is infinite; columns that are
        not bent are exact.
        """
        z = z.double()
        if not self.bends:
            return torch.zeros_like(z)
        mapped, zero = self._terms(z)
        error = ROUNDED * (mapped.abs() + zero.abs()) + LOST
        known = ((z - self.center) / self.scale).abs() <= FARTHEST
        known = known & ((self.center / self.scale).abs() <= FARTHEST)
        return torch.where(self.bent, torch.where(known, error, torch.inf), 0.0)

    def _terms(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self._bent((z - self.center) / self.scale), self._bent(-self.center / self.scale)

    def _bent(self, u: Tensor) -> Tensor:
        if self.bend == "log_tails":
            return BEND * torch.asinh(u / BEND)
        return u / torch.hypot(torch.ones_like(u), u / BEND)
