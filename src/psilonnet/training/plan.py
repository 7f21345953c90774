"""How a population is trained, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from psilonnet.training.schedules import Schedule, trapezoid

if TYPE_CHECKING:
    from psilonnet.training.pruning import Pruning

# The paper's grid over the strength (App. C.1).
STRENGTHS = (5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1)


@dataclass(frozen=True)
class Plan:
    """How to train; the defaults are the paper's for small tables (App. C.1).

    Parameters
    ----------
    steps, batch_size : int
    schedule : callable
        Maps the share of the steps taken, from 0 to 1, to a learning rate.
    evaluate_every : int
        Steps between two lines of the history.
    prune : Pruning, optional
        The stage at the end that moves the weights to exact zeros.
    projected : bool
        Project the directions onto the L1 ball after each step.
    seed : int
        Of the batches.
    matmul_precision : {"highest", "high", "medium"}
        "medium" allows products in bfloat16; see ``torch.set_float32_matmul_precision``.
    progress : bool
        Show a progress bar.
    """

    steps: int = 5000
    batch_size: int = 400
    schedule: Schedule = trapezoid
    evaluate_every: int = 250
    prune: Pruning | None = None
    projected: bool = False
    seed: int = 0
    matmul_precision: Literal["highest", "high", "medium"] = "highest"
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"The {name!r} of a Plan must be at least 1. Got {getattr(self, name)!r}."
                )
