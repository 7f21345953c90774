"""Hooks into a run. Each does nothing until a subclass says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from tqdm.auto import tqdm

from psilonnet.training.history import DivergedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.training.state import RunState


class Callback:
    """The hooks of a run; override what you need."""

    def on_start(self, run: RunState) -> None:
        """Before the first step, or before the first step after a restart."""

    def on_step(self, run: RunState) -> None:
        """After each step."""

    def on_evaluation(self, run: RunState) -> None:
        """After each evaluation; ``run.history`` has its line."""

    def on_interrupt(self, run: RunState) -> None:
        """When training is stopped from the keyboard, before the exception goes on."""

    def on_end(self, run: RunState) -> None:
        """When training ends in any way."""


class ProgressBar(Callback):
    """A progress bar with the best validation loss so far."""

    def __init__(self) -> None:
        self._bar: Any = None

    def on_start(self, run: RunState) -> None:
        """Open the bar."""
        self._bar = tqdm(total=run.plan.steps, initial=run.step, unit="step", leave=False)

    def on_step(self, run: RunState) -> None:
        """Move the bar."""
        self._bar.update()

    def on_evaluation(self, run: RunState) -> None:
        """Show losses and members."""
        losses = run.history.last("valid_loss")
        known = losses[losses.isfinite()]
        shown = {"valid_loss": f"{known.min():.4f}"} if len(known) else {}
        self._bar.set_postfix(members=len(run.members), **shown)

    def on_end(self, run: RunState) -> None:
        """Close the bar."""
        if self._bar is not None:  # if all callbacks have started
            self._bar.close()


# (fraction of training, members kept); chosen on the curves of experiments/studies/halving.py.
NARROWING = ((0.05, 8), (0.3, 3), (0.5, 2))


def narrowing_cost(members: int, rungs: Sequence[tuple[float, int]] = NARROWING) -> float:
    """Return the cost of a grid that is narrowed on the way, in trainings of one member.

    Examples
    --------
    >>> narrowing_cost(4, [(0.5, 1)])
    2.5
    """
    cost, alive, before = 0.0, members, 0.0
    for fraction, kept in rungs:
        cost += alive * (fraction - before)
        alive, before = min(alive, kept), fraction
    return cost + alive * (1 - before)


def narrow(strengths: Sequence[float], losses: Sequence[float], kept: int) -> list[int]:
    """Return the positions of the best strength so far and of its stronger neighbours.

    The longer a training, the more it overfits, so the best strength only becomes stronger:
    strengths weaker than the best so far are dropped. Where too few stronger ones are left, weaker
    neighbours are kept as well.

    Examples
    --------
    >>> narrow([1e-3, 1e-2, 1e-1, 1.0], [0.7, 0.5, 0.6, 0.9], 2)
    [1, 2]
    """
    order = sorted(range(len(strengths)), key=strengths.__getitem__)
    ranked = [losses[k] if losses[k] == losses[k] else float("inf") for k in order]
    best = ranked.index(min(ranked))
    first = max(0, min(best, len(order) - kept))
    return sorted(order[first : first + kept])


class Narrowing(Callback):
    """Narrow a grid of strengths on the way: at given fractions of training keep fewer members.

    Kept are the strength with the least validation loss so far and its stronger neighbours.
    Members of equal strength (folds, seeds) stay or go together, by their mean loss.

    Parameters
    ----------
    rungs : sequence of (fraction of training, strengths kept)
        Applied at the first evaluation at or after the fraction.
    """

    def __init__(self, rungs: Sequence[tuple[float, int]] = NARROWING) -> None:
        self.rungs = tuple(rungs)
        if not all(0 < fraction <= 1 <= kept for fraction, kept in self.rungs):
            raise ValueError(
                "A rung of Narrowing must be a fraction above 0 and at most 1, and keep at least "
                f"one strength. Got {self.rungs!r}."
            )

    def on_start(self, run: RunState) -> None:
        """Refuse a run that has nothing to choose by."""
        if run.valid_rows is None:
            raise ValueError(
                "Narrowing needs held-out rows to rank the strengths by. Got none: make the Run "
                "with valid_rows."
            )

    def on_evaluation(self, run: RunState) -> None:
        """Drop the members whose strengths are not kept."""
        previous = run.history.step[-2] if len(run.history.step) > 1 else 0
        for fraction, kept in self.rungs:
            strengths, group = torch.unique(run.reg_strength.cpu(), return_inverse=True)
            if previous < fraction * run.plan.steps <= run.step and kept < len(strengths):
                line = run.history.lines["valid_loss"][-1]
                losses = torch.tensor([line[member] for member in run.members])
                if not losses.isfinite().any():
                    raise DivergedError(run.history.diverged)
                mean = [losses[group == k].mean().item() for k in range(len(strengths))]
                chosen = torch.tensor(narrow(strengths.tolist(), mean, kept))
                run.drop(keep=torch.isin(group, chosen).nonzero().flatten())
