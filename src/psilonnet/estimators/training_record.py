"""What a fit leaves behind: all candidates, so that another choice needs no second training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psilonnet.estimators.selection import choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.estimators.designs import Design
    from psilonnet.estimators.paths import Candidate
    from psilonnet.estimators.problem import Problem
    from psilonnet.estimators.selection import Choice, HeldOut


@dataclass(frozen=True)
class Record:
    """The candidates of a fit, and the rows that choose among them.

    Attributes
    ----------
    designs : sequence of Design
    candidates : list of Candidate
    histories : list of dict of lists
        Of each design.
    problem : Problem
    held_out : HeldOut, or None
    """

    designs: Sequence[Design]
    candidates: list[Candidate]
    histories: list[dict[str, list[float]]]
    problem: Problem
    held_out: HeldOut | None

    def path(self, choice: Choice) -> dict[str, list[float]] | None:
        """Return what is known of each candidate, and its weight in the model."""
        if self.held_out is None:
            return None
        weights = dict(zip(choice.picks, choice.shares, strict=True))
        found = self.candidates
        return {
            "design": [float(c.design) for c in found],
            "reg_strength": [c.strength for c in found],
            "valid_loss": [float(self.held_out.losses(c.outputs).mean()) for c in found],
            "bound": [c.bound for c in found],
            "near_sparsity": [c.near_sparsity for c in found],
            "sparsity": [c.sparsity for c in found],
            "steps": [float(c.step) for c in found],
            "weight": [weights.get(k, 0.0) for k in range(len(found))],
        }

    def point(self, selection: Any) -> tuple[float, float]:
        """Return held-out loss and bound of the average that a selection chooses."""
        assert self.held_out is not None  # else there is nothing to choose on
        choice = choose(self.candidates, self.held_out, selection)
        bounds = [self.candidates[k].bound for k in choice.picks]
        bound = sum(w * b for w, b in zip(choice.shares, bounds, strict=True))
        return float(self.held_out.losses(choice.outputs).mean()), bound

    def members(self, choice: Choice) -> dict[str, list[float]]:
        """Return what is averaged, the heaviest first."""
        picked = [self.candidates[k] for k in choice.picks]
        return {
            "weight": choice.shares,
            "design": [float(c.design) for c in picked],
            "reg_strength": [c.strength for c in picked],
        }
