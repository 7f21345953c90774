"""The best strength of a grid without training all of it.

Along the strengths the validation loss falls and rises again, but for small waves. So three
strengths that are far apart are trained first, then the neighbours of the best one, until both of
them are worse. Members do not influence each other: what is trained is as in the whole grid.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from experiments.grid import PER_STRENGTH, fresh_grid
from psilonnet.training import STRENGTHS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from experiments.cells import Cell
    from experiments.data import Parts, Table
    from psilonnet.training import Plan

FIRST = (2, 5, 8)  # of thirteen: 2.5e-4, 2.5e-3, 2.5e-2


def next_positions(losses: Mapping[int, float], size: int) -> list[int]:
    """Return which positions of a grid to train next; none once the best is bracketed.

    Examples
    --------
    >>> next_positions({2: 0.7, 5: 0.6, 8: 0.9}, 13)
    [4, 6]
    >>> next_positions({0: 0.5, 1: 0.6, 2: 0.7, 5: 0.7, 8: 0.9}, 13)
    []
    """
    if not losses:
        return list(FIRST)
    best = min(losses, key=losses.__getitem__)
    return [k for k in (best - 1, best + 1) if 0 <= k < size and k not in losses]


def replay(losses: Sequence[float]) -> dict[int, float]:
    """Return what the search would have trained of a whole grid, by position."""
    known: dict[int, float] = {}
    while wanted := next_positions(known, len(losses)):
        known |= {k: losses[k] for k in wanted}
    return known


def searched_grid(variant: str, table: Table, parts: Parts, *, plan: Plan) -> Cell:
    """Train the strengths that the search asks for; the result is that of a smaller grid."""
    known: dict[int, Cell] = {}
    begin = perf_counter()
    while wanted := next_positions(
        {k: cell["valid_loss"] for k, cell in known.items()}, len(STRENGTHS)
    ):
        strengths = [STRENGTHS[k] for k in wanted]
        grid = fresh_grid(variant, table, parts, strengths=strengths, plan=plan)
        for position, k in enumerate(wanted):
            known[k] = {name: grid[name][position] for name in PER_STRENGTH}
    cells = [known[k] for k in sorted(known)]
    joined: Cell = {name: [cell[name] for cell in cells] for name in PER_STRENGTH}
    return {**joined, "seconds": perf_counter() - begin}
