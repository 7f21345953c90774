"""The best strength of a grid without training all of it.

Along the strengths the validation loss falls and rises again, but for small waves. So three
strengths that are far apart are trained first, then the neighbours of the best one, until both of
them are worse. Strong strengths come to predict the mean; if the best is worse than that, the
search goes on from the strongest. Members do not influence each other: what is trained is as in
the whole grid.
"""

from __future__ import annotations

from math import inf
from time import perf_counter
from typing import TYPE_CHECKING

from experiments.grid import PER_STRENGTH, fresh_grid
from psilonnet.training import STRENGTHS, get_loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from psilonnet.training import Plan

FIRST = (2, 5, 8)  # of thirteen: 2.5e-4, 2.5e-3, 2.5e-2
WORSE = 1.01  # times the loss of the mean; nets that predict it are slightly above


def loss_of_mean(table: Table, parts: Parts) -> float:
    """Return the validation loss of predicting the mean of the training rows."""
    mean = parts.train.y.mean()
    output = mean if table.task == "regression" else mean.logit()
    target = parts.valid.y
    return get_loss(table.loss)(output.expand_as(target), target).mean().item()


def next_positions(losses: Mapping[int, float], size: int, of_mean: float = inf) -> list[int]:
    """Return which positions of a grid to train next; none once the best is bracketed.

    ``of_mean`` is the loss of predicting the mean.

    Examples
    --------
    >>> next_positions({2: 0.7, 5: 0.6, 8: 0.9}, 13)
    [4, 6]
    >>> next_positions({0: 0.5, 1: 0.6, 2: 0.7, 5: 0.7, 8: 0.9}, 13)
    []
    >>> next_positions({0: 0.5, 1: 0.6, 2: 0.7, 5: 0.7, 8: 0.9}, 13, of_mean=0.4)
    [12]
    """
    if not losses:
        return list(FIRST)
    best = min(losses, key=losses.__getitem__)
    near = [k for k in (best - 1, best + 1) if 0 <= k < size and k not in losses]
    if not near and losses[best] > WORSE * of_mean and size - 1 not in losses:
        return [size - 1]
    return near


def replay(losses: Sequence[float], of_mean: float = inf) -> dict[int, float]:
    """Return what the search would have trained of a whole grid, by position."""
    known: dict[int, float] = {}
    while wanted := next_positions(known, len(losses), of_mean):
        known |= {k: losses[k] for k in wanted}
    return known


def searched_grid(variant: str, table: Table, parts: Parts, *, plan: Plan) -> Cell:
    """Train the strengths that the search asks for; the result is that of a smaller grid."""
    known: dict[int, Cell] = {}
    of_mean = loss_of_mean(table, parts)
    begin = perf_counter()
    while wanted := next_positions(
        {k: cell["valid_loss"] for k, cell in known.items()}, len(STRENGTHS), of_mean
    ):
        strengths = [STRENGTHS[k] for k in wanted]
        grid = fresh_grid(variant, table, parts, strengths=strengths, plan=plan)
        for position, k in enumerate(wanted):
            known[k] = {name: grid[name][position] for name in PER_STRENGTH}
    cells = [known[k] for k in sorted(known)]
    joined: Cell = {name: [cell[name] for cell in cells] for name in PER_STRENGTH}
    return {**joined, "seconds": perf_counter() - begin}
