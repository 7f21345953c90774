"""One progress bar for a whole fit, its stages named."""

from __future__ import annotations

import multiprocessing
import sys
from math import isfinite
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

if TYPE_CHECKING:
    from psilonnet.estimators.problem import View

OVERHEAD = 30_000  # what a step of a network costs besides, in parameters
ROOMY = 80  # columns of a terminal in which the loss fits beside the bar


class Progress:
    """The bar of a fit; it counts steps, weighed by the size of the networks.

    Parameters
    ----------
    verbose : bool, int or "auto"
        True for a bar, 2 for lines, False for nothing; "auto" is a bar in terminals and notebooks.
    """

    def __init__(self, verbose: Any) -> None:
        self.lines = not isinstance(verbose, bool) and verbose == 2
        self.shown = self.lines or shows_bar(verbose)
        self._bar: Any = None
        self._stage, self._cost = "", 0.0

    def plan(self, views: list[tuple[View, int]]) -> None:
        """Begin, knowing the views that will be trained and for how many steps."""
        total = sum(steps * _step_cost(view) for view, steps in views)
        if self.shown and not self.lines:
            form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} left{postfix}"
            self._bar = tqdm(
                total=total, leave=False, bar_format=form, desc="Fitting", dynamic_ncols=True
            )

    def begin(self, stage: str, steps: int, view: View, times: int = 0) -> None:
        """Name the stage that begins; one that was not planned counts so many times its members."""
        self._stage, self._cost = stage, _step_cost(view) * max(1, times)
        if self.lines:
            print(f"{stage}: {steps} steps.", file=sys.stderr, flush=True)
        if self._bar is not None:
            self._bar.set_description_str(f"Fitting ({stage})")
            if times:
                self.extend(steps)

    def step(self) -> None:
        """Count a step."""
        if self._bar is not None:
            self._bar.update(self._cost)

    def extend(self, steps: int) -> None:
        """Plan more steps of this stage, or fewer."""
        if self._bar is not None:
            self._bar.total += steps * self._cost
            self._bar.refresh()

    def tell(self, loss: float) -> None:
        """Show the mean held-out loss, where the terminal has room for it."""
        if self._bar is not None and isfinite(loss) and _columns() >= ROOMY:
            self._bar.set_postfix_str(f"held-out loss {loss:.4g}", refresh=False)

    def end(self, words: str) -> None:
        """Close the bar, and say how it went."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self.shown and words:
            print(words, file=sys.stderr, flush=True)


def _step_cost(view: View) -> float:
    """Return about what a step costs, in parameters."""
    inputs = view.problem.x.shape[1] * view.design.pieces
    return inputs * view.width + view.depth * view.width**2 + OVERHEAD


def _columns() -> int:
    """Return how wide the terminal is; a notebook is wide enough."""
    return get_terminal_size((ROOMY, 24)).columns


def shows_bar(verbose: Any) -> bool:
    """Return whether there is a bar: where somebody is looking, if that is left open."""
    if verbose != "auto":
        return bool(verbose)
    interactive = sys.stderr.isatty() or "ipykernel" in sys.modules
    return interactive and multiprocessing.parent_process() is None
