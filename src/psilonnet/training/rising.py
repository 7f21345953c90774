"""One training for a whole path of strengths: the strength rises while the network is trained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psilonnet.training.plan import Plan

DECAY = 0.99  # of the average of the weights, per step
LAST_RATE = 0.25  # of the learning rate, at the end


@dataclass(frozen=True)
class RisingPath:
    """A path of strengths, from weak to strong: first a level part at the weakest, then a rise.

    The rise takes as many steps from each strength to the next, and is even in the logarithm. The
    learning rate is level until the rise begins, and falls to a quarter along it. Weak strengths
    are the better start for strong ones, and not the other way round.

    Parameters
    ----------
    strengths : tuple of float
        In rising order; only the first may be 0.
    level, rise : int
        The steps of both parts.
    learning_rate : float
    """

    strengths: tuple[float, ...]
    level: int
    rise: int
    learning_rate: float

    @property
    def steps(self) -> int:
        """The steps of both parts."""
        return self.level + self.rise

    @property
    def marks(self) -> tuple[int, ...]:
        """The number of steps at which each of the strengths is reached."""
        between = len(self.strengths) - 1
        if between == 0:
            return (self.steps,)
        return tuple(round(self.level + k * self.rise / between) for k in range(between + 1))

    def strength(self, share: float) -> float:
        """Return the strength after a share of the steps."""
        step = share * (self.steps - 1)
        points = list(zip(self.marks, self.strengths, strict=True))
        for (begin, weak), (end, strong) in pairwise(points):
            if step < end:
                done = max(0.0, (step - begin) / max(1, end - begin))
                if weak == 0:
                    return strong * done
                return exp(log(weak) + done * log(strong / weak))
        return self.strengths[-1]

    def rate(self, share: float) -> float:
        """Return the learning rate after a share of the steps."""
        step = share * (self.steps - 1)
        rising = min(1.0, (step + 1) / max(1, min(50, self.level // 4)))
        falling = max(0.0, (step - self.level) / max(1, self.rise))
        return self.learning_rate * min(rising, 1 - (1 - LAST_RATE) * falling)

    def extended(self, steps: int) -> RisingPath:
        """Return the path with a longer level part."""
        return replace(self, level=self.level + steps)

    def shortened(self, level: int, passed: int) -> RisingPath:
        """Return the path with a shorter level part, and a rise that passes over weak strengths.

        So many strengths after the first are left out; the steps between strengths stay.
        """
        strengths = (self.strengths[0], *self.strengths[1 + passed :])
        rise = round(self.rise * (len(strengths) - 1) / max(1, len(self.strengths) - 1))
        return replace(self, strengths=strengths, level=level, rise=rise)

    def plan(self, plan: Plan) -> Plan:
        """Return a plan that trains along the path."""
        return replace(
            plan,
            steps=self.steps,
            schedule=self.rate,
            strength=self.strength,
            average=DECAY,
            marks=self.marks,
        )
