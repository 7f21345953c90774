"""The average of candidates that goes best together on the held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet._numbers import is_real
from psilonnet.nn import AveragedNet
from psilonnet.training import DivergedError, get_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psilonnet.estimators.paths import Candidate
    from psilonnet.estimators.problem import Problem

Array = np.ndarray[Any, Any]

# The weight w of the bound in ``log(loss) + w log(1 + bound)``.
SELECTIONS = {"accurate": 0.0, "balanced": 0.01, "provable": 0.03}
ROUNDS = 30  # of the greedy average
LEAST_LOSS = -1e-9  # by rounding, a loss of 0 can be below it
MOST_PICKS = 4  # different candidates in an average


def _bound_weight(selection: Any) -> float:
    """Return the weight of the bound that a parameter asks for."""
    return SELECTIONS[selection] if isinstance(selection, str) else float(selection)


def is_selection(value: Any) -> bool:
    """Whether a parameter is a word for a selection, or a weight of the bound."""
    if isinstance(value, str):
        return value in SELECTIONS
    return is_real(value) and value >= 0


class HeldOut:
    """The held-out rows of a problem, and the loss there.

    Parameters
    ----------
    problem : Problem
    rows : ndarray of row numbers
    """

    def __init__(self, problem: Problem, rows: Array) -> None:
        self.rows = rows
        chosen = torch.as_tensor(rows)
        self.y = problem.y[chosen].double()
        weight = problem.weight[chosen].double()
        self.weight = weight / weight.mean()
        self.loss = get_loss(problem.loss)
        self._is_squared = isinstance(problem.loss, str) and problem.loss == "squared_error"

    def losses(self, outputs: Array) -> torch.Tensor:
        """Return the weighted loss of each row, of shape (..., rows)."""
        return self.loss(torch.as_tensor(outputs), self.y).detach() * self.weight

    def reported(self, outputs: Array) -> Array:
        """Return the mean loss as it is reported: of squared errors the root, of shape (...)."""
        mean = self.losses(outputs).mean(dim=-1).numpy()
        if (mean < LEAST_LOSS).any():
            raise ValueError(
                "A loss must be at least 0 in the mean over held-out rows: networks are chosen by "
                f"its logarithm. Got {mean.min():.4g}: add to it what makes it 0 where an output "
                "is as good as can be."
            )
        return np.asarray(np.sqrt(mean) if self._is_squared else mean)

    def excess_loss(self, outputs: Array, reference: Array) -> float:
        """Return by which share the loss is above that of a reference, less one standard error."""
        losses = self.losses(reference)
        more = self.losses(outputs) - losses
        error = more.std(correction=0) / len(more) ** 0.5
        return float((more.mean() - error) / losses.mean().clamp(min=1e-300))


@dataclass(frozen=True)
class Choice:
    """An average of candidates.

    Attributes
    ----------
    picks : list of int
        The numbers of the candidates, the heaviest first.
    shares : list of float
        Their weights, which sum to 1.
    outputs : ndarray of shape (held-out rows, outputs)
        The average of the outputs of networks that were not trained on these rows.
    """

    picks: list[int]
    shares: list[float]
    outputs: Array

    def averaged(self, candidates: Sequence[Candidate]) -> AveragedNet:
        """Return the average as one network."""
        nets = [candidates[k].make_net() for k in self.picks]
        pairs = zip(nets, self.shares, strict=True)
        return AveragedNet([part for net, w in pairs for part in net.weighed(w)], nets[0].columns)


def choose(
    candidates: Sequence[Candidate],
    held_out: HeldOut | None,
    selection: Any,
    most: int = MOST_PICKS,
) -> Choice:
    """Return the average that is best on the held-out rows; without any, the last candidate.

    Raises
    ------
    DivergedError
        If no candidate has a finite loss there.
    """
    if held_out is None:
        last = len(candidates) - 1
        return Choice([last], [1.0], candidates[last].outputs)
    outputs = np.stack([c.outputs for c in candidates])
    bounds = np.array([c.bound for c in candidates])
    own = _bound_weight(selection)

    def costs(weight: float, averages: Array, average_bounds: Array) -> Array:
        loss = np.log(np.maximum(held_out.reported(averages), 1e-300))
        return np.asarray(loss + weight * np.log1p(average_bounds))

    def own_cost(shares: Array) -> float:
        return float(costs(own, np.tensordot(shares, outputs, axes=1), shares @ bounds))

    # Picking one by one may miss the best: with a common list of averages for all words, a larger
    # weight of the bound never has the smaller loss, nor the larger bound.
    found = [
        greedy_weights(outputs, bounds, partial(costs, weight), most)
        for weight in sorted({*SELECTIONS.values(), own})
    ]
    if not np.any(found):
        raise DivergedError([])
    weights = min(found, key=own_cost)
    picks = sorted(np.flatnonzero(weights).tolist(), key=lambda k: -weights[k])
    shares = [float(weights[k]) for k in picks]
    return Choice(picks, shares, np.tensordot(shares, outputs[picks], axes=1))


def greedy_weights(
    outputs: Array,
    bounds: Array,
    costs: Callable[[Array, Array], Array],
    most: int = MOST_PICKS,
) -> Array:
    """Return the weights of candidates that are picked one by one, with repetition.

    Each pick is the one that makes the cost of the average least; of all lengths of the list, the
    one with the least cost is taken. The bound of an average is the average of the bounds.

    Parameters
    ----------
    outputs : ndarray of shape (candidates, ...)
    bounds : ndarray of shape (candidates,)
    costs : callable
        Maps averages, of the shape of outputs, and their bounds to what is to be least.
    most : int
        How many different candidates there may be.
    """
    total, total_bound, counts = np.zeros_like(outputs[0]), 0.0, np.zeros(len(outputs))
    least, best = np.inf, np.zeros(len(outputs))
    # Of one candidate all lists have the same average: the second pick would tell nothing new.
    rounds = ROUNDS if len(outputs) > 1 else 1
    for number in range(1, rounds + 1):
        is_full = (counts > 0).sum() >= most
        open_ = np.flatnonzero(counts > 0) if is_full else np.arange(len(outputs))
        cost = costs((total + outputs[open_]) / number, (total_bound + bounds[open_]) / number)
        pick = int(open_[cost.argmin()])
        total, total_bound = total + outputs[pick], total_bound + bounds[pick]
        counts[pick] += 1
        if float(cost.min()) < least:
            least, best = float(cost.min()), counts / number
    return best
