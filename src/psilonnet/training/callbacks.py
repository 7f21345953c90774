"""Hooks into a run. Each does nothing until a subclass says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from tqdm.auto import tqdm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.training.loop import Run


class Callback:
    """The hooks of a run; override what you need."""

    def on_start(self, run: Run) -> None:
        """Before the first step, or before the first step after a restart."""

    def on_step(self, run: Run) -> None:
        """After each step."""

    def on_evaluation(self, run: Run) -> None:
        """After each evaluation; ``run.history`` has its line."""

    def on_interrupt(self, run: Run) -> None:
        """When training is stopped from the keyboard, before the exception goes on."""

    def on_end(self, run: Run) -> None:
        """When training ends in any way."""


class ProgressBar(Callback):
    """A progress bar with the best validation loss so far."""

    def on_start(self, run: Run) -> None:
        """Open the bar."""
        self._bar = tqdm(total=run.plan.steps, initial=run.step, unit="step", leave=False)

    def on_step(self, run: Run) -> None:
        """Move the bar."""
        self._bar.update()

    def on_evaluation(self, run: Run) -> None:
        """Show losses and members."""
        loss = run.history.last("valid_loss").nan_to_num(torch.inf).min()
        self._bar.set_postfix(members=len(run.members), valid_loss=f"{loss:.4f}")

    def on_end(self, run: Run) -> None:
        """Close the bar."""
        self._bar.close()


# Chosen on the curves of the full grids; see experiments/halving.py.
HALVING_RUNGS = ((0.1, 7), (0.2, 5), (0.3, 3), (0.6, 2))


def halving_cost(members: int, rungs: Sequence[tuple[float, int]]) -> float:
    """Return the cost of a population with dropping, in trainings of one member.

    Examples
    --------
    >>> halving_cost(4, [(0.5, 1)])
    2.5
    """
    cost, alive, before = 0.0, members, 0.0
    for fraction, kept in rungs:
        cost += alive * (fraction - before)
        alive, before = min(alive, kept), fraction
    return cost + alive * (1 - before)


class Halving(Callback):
    """Successive halving: at given fractions of training keep only the most promising members.

    Parameters
    ----------
    rungs : sequence of (fraction of training, members kept)
        Members are ranked by validation loss at the first evaluation at or after the fraction.
    """

    def __init__(self, rungs: Sequence[tuple[float, int]] = HALVING_RUNGS) -> None:
        self.rungs = tuple(rungs)

    def on_evaluation(self, run: Run) -> None:
        """Drop the members that are not among the best."""
        previous = run.history.step[-2] if len(run.history.step) > 1 else 0
        for fraction, kept in self.rungs:
            at = fraction * run.plan.steps
            if previous < at <= run.step and kept < len(run.members):
                loss = run.history.valid_loss[-1][run.members].nan_to_num(torch.inf)
                run.drop(keep=loss.argsort()[:kept].sort().values)
