"""How a population is trained, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from psilonnet.training.pruning import Pruning, check_count
from psilonnet.training.schedules import Schedule, trapezoid

# The paper's grid over the strength (App. C.1).
STRENGTHS = (5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1)


@dataclass(frozen=True)
class Plan:
    """How to train; the defaults are the paper's for small tables (App. C.1).

    Parameters
    ----------
    steps, batch_size : int
        A table of fewer rows than a batch is the batch of every step.
    schedule : callable
        Maps the share of the steps taken, from 0 to 1, to a learning rate.
    strength : callable, optional
        Maps the share of the steps taken to a factor of every strength; by default it is 1.
    average : float, default=0
        The decay of a moving average of the weights, such as 0.99; 0 for none. Held-out losses
        are then those of the average.
    evaluate_every : int
        Steps between two lines of the history; the last step always has one.
    marks : tuple of int
        Steps that have a line besides.
    prune : Pruning, optional
        The stage at the end that moves the weights to exact zeros.
    projected : bool
        Project the directions onto the L1 ball after each step.
    seed : int
        Of the batches.
    matmul_precision : {"highest", "medium"}
        "medium" allows products in bfloat16 where the processor has them and the gradients are
        written out (plain ReLU networks). The precision of torch itself is never touched.
    progress : bool
        Show a progress bar.
    """

    steps: int = 5000
    batch_size: int = 400
    schedule: Schedule = trapezoid
    strength: Schedule | None = None
    average: float = 0.0
    evaluate_every: int = 250
    marks: tuple[int, ...] = ()
    prune: Pruning | None = None
    projected: bool = False
    seed: int = 0
    matmul_precision: Literal["highest", "medium"] = "highest"
    progress: bool = True

    def is_evaluated(self, step: int) -> bool:
        """Whether the history has a line after so many steps."""
        return step % self.evaluate_every == 0 or step == self.steps or step in self.marks

    def __post_init__(self) -> None:
        if not 0 <= self.average < 1:
            raise ValueError(
                "The 'average' of a Plan must be a decay of at least 0 and below 1. Got "
                f"{self.average!r}."
            )
        for name in ("steps", "batch_size", "evaluate_every"):
            check_count("Plan", name, getattr(self, name))
        if self.prune is not None and self.prune.steps > self.steps:
            raise ValueError(
                f"A Plan that is to prune for {self.prune.steps} steps must have as many. "
                f"Got {self.steps!r}: train longer, or use Pruning(steps={self.steps!r}) or less."
            )
