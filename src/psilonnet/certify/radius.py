"""Within which radius the class of a row stays: the margins over the bounds, and two searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.certify.box import Box
from psilonnet.certify.combinations import class_margins
from psilonnet.certify.global_bound import global_moves
from psilonnet.certify.methods import LOCAL
from psilonnet.certify.rounding import UNIT

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.certify.combinations import Combinations
    from psilonnet.certify.methods import Method
    from psilonnet.certify.proof import Proof

Array = np.ndarray[Any, Any]
FARTHEST = 1e12  # standard deviations; a model that depends on nothing is certified this far
DOUBLINGS, HALVINGS = 8, 8  # of the search by doubling, which finds a radius to 0.4 %
TRIALS = 6  # of the search by brackets
GRID = 4096  # ratios that it tries between a radius and twice that radius


def certified_radius(proof: Proof) -> Array:
    """Return how many standard deviations all numbers can move without using a margin up."""
    margins, asked = class_margins(proof.outputs)
    unit = (proof.box.radius > 0).double()  # one standard deviation for all that may move
    per_unit = global_moves(proof.net, proof.x, Box(unit), asked)
    rough = _least_quotient(margins, per_unit)
    slack = proof.slack(unit * rough.unsqueeze(-1), asked)
    radius = _least_quotient(margins - slack, per_unit) * (1 - 1e-12)
    for method in proof.methods[1:]:
        search = _Search(proof, method, unit, margins, asked)
        found = search.doubled(radius) if method is LOCAL else search.bracketed(radius)
        radius = found.clamp(max=FARTHEST)
    # What the rounding of the encoding takes away.
    size = proof.x.abs().amax(dim=-1) + 1
    safe = radius - 16 * UNIT * (size + radius) - proof.reading_error
    return np.asarray(safe.clamp(min=0.0).numpy())


@dataclass(frozen=True)
class _Search:
    """A search for a larger radius with another method, from one that holds.

    Attributes
    ----------
    proof : Proof
    method : Method
    unit : Tensor of shape (rows, in)
        One standard deviation for every number that may move, and zero for all else.
    margins : Tensor of shape (rows, count)
        What may be used up.
    asked : Combinations
    """

    proof: Proof
    method: Method
    unit: Tensor
    margins: Tensor
    asked: Combinations

    def doubled(self, radius: Tensor) -> Tensor:
        """Return the largest radius found by doubling and halving; never below the given one."""
        low, high = radius, radius * 2
        growing = radius > 0
        for _ in range(DOUBLINGS):
            growing = growing & self._holds(high)
            if not growing.any():
                break
            low = torch.where(growing, high, low)
            high = torch.where(growing, high * 2, high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            good = self._holds(middle)
            low, high = torch.where(good, middle, low), torch.where(good, high, middle)
        return torch.maximum(low, radius)

    def bracketed(self, radius: Tensor) -> Tensor:
        """Return a radius found in few trials from a given one, and not below it.

        Each trial is where the margin would be used up if falls grew as they did so far: they grow
        faster, so it is first too far and then lies between what holds and what does not. Trials
        are taken from a fixed grid of ratios to the given radius, the next one above. A place
        between two would carry on what is rounded in the falls, and then the radius would depend
        on which rows are proven together.
        """
        low, high = torch.zeros_like(radius), torch.full_like(radius, torch.inf)  # on the grid
        used_low = self._used(radius).clamp(max=1.0)
        used_high = high
        for _ in range(TRIALS):
            looking = high - low > 1
            if not looking.any():
                break
            here, far = _grid_ratio(low), _grid_ratio(high)
            share = ((1 - used_low) / (used_high - used_low)).nan_to_num(0.5).clamp(0.05, 0.95)
            first = 1.02 * here / used_low.clamp(min=1 / 16)
            goal = torch.where(high.isfinite(), here + share * (far - here), first)
            trial = torch.maximum(torch.minimum(_grid_place(goal), high - 1), low + 1)
            used = self._used(radius * _grid_ratio(trial))
            good, bad = looking & (used < 1), looking & (used >= 1)
            low, high = torch.where(good, trial, low), torch.where(bad, trial, high)
            used_low = torch.where(good, used, used_low)
            used_high = torch.where(bad, used.clamp(max=1e3), used_high)
        return radius * _grid_ratio(low)

    def _holds(self, radius: Tensor) -> Tensor:
        """Return True where no margin is used up within a radius."""
        return (self._falls(radius) < self.margins).all(dim=-1)

    def _used(self, radius: Tensor) -> Tensor:
        """Return the largest share of a margin that is used up within a radius."""
        falls, margins = self._falls(radius), self.margins
        used = torch.where(falls < margins, falls / margins, (falls / margins).clamp(min=1.0))
        return used.nan_to_num(torch.inf).amax(dim=-1)

    def _falls(self, radius: Tensor) -> Tensor:
        """Return how far computed combinations can fall within one radius for each row."""
        box = Box(self.unit * radius.unsqueeze(-1))
        fall = self.method.falls(self.proof.net, self.proof.x, box, self.asked)
        return fall + self.proof.slack(box.radius, self.asked)


def _grid_ratio(place: Tensor) -> Tensor:
    """Return the ratio at a place of the grid; that of place 0 is 1."""
    return torch.exp2(place / GRID)


def _grid_place(ratio: Tensor) -> Tensor:
    """Return the first place of the grid with no less than a ratio."""
    return (GRID * ratio.log2()).ceil()


def _least_quotient(margins: Tensor, per_unit: Tensor) -> Tensor:
    """Return the least quotient of each row; it is undefined, and 0, where nothing is left."""
    quotient = (margins / per_unit).nan_to_num(nan=0.0, posinf=FARTHEST)
    return quotient.amin(dim=-1).clamp(min=0.0, max=FARTHEST)
