"""How far to prune: several scales are tried on the held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.estimators.choosing import HeldOut, is_whole_setting, of_setting
from psilonnet.estimators.fitting import rows_of_splits
from psilonnet.training import repeat_member

if TYPE_CHECKING:
    from collections.abc import Generator

    from psilonnet.estimators.choosing import Array, Choice
    from psilonnet.estimators.fitting import Problem
    from psilonnet.estimators.jobs import Job
    from psilonnet.training import Run

PRUNE_NORMS = (8.0, 4.0, 2.0)  # of the rows when pruning begins: large leaves little
PRUNE_LOSS = 0.02  # the share of the held-out loss that pruning may add


def choose_row_norm(problem: Problem, choice: Choice) -> Generator[Job, Run, float]:
    """Prune the heaviest pick from several norms of its rows; return the one to prune all from."""
    design, strength = choice.picks[0].design, choice.picks[0].strength
    splits = choice.splits
    norms = tuple(norm for norm in PRUNE_NORMS for _ in splits)
    net = repeat_member(design.make_nets(problem, [0])[0], len(norms))
    train = rows_of_splits(problem, [a for a, _ in splits], len(PRUNE_NORMS))
    run = yield design.job(net, problem, train, None, [strength] * len(norms), prune=norms)
    outputs = {
        norm: of_setting(run, problem, splits, k)[1]
        for k, norm in enumerate(PRUNE_NORMS)
        if is_whole_setting(run, len(splits), k)
    }
    if not outputs:
        return PRUNE_NORMS[-1]
    return sparsest_that_holds(outputs, choice.heaviest, HeldOut(problem, choice.held_out))


def sparsest_that_holds(outputs: dict[float, Array], dense: Array, held_out: HeldOut) -> float:
    """Return the first norm of those whose held-out outputs are given, the sparsest first, to hold.

    It holds if its loss, with one standard error of the difference, is at most 2 % above the least
    of all, with and without pruning. If none does, the one with the least loss is returned.
    """
    best = min([dense, *outputs.values()], key=held_out.mean)
    for norm, own in outputs.items():
        if held_out.surely_more(own, best) <= PRUNE_LOSS:
            return norm
    return min(outputs, key=lambda norm: held_out.mean(outputs[norm]))
