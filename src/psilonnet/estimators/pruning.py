"""How far to prune: several cuts are tried on the held-out rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psilonnet.estimators.choosing import HeldOut, has_all_folds, take_setting
from psilonnet.estimators.fitting import Cut, rows_of_splits, warn_lost
from psilonnet.training import repeat_member

if TYPE_CHECKING:
    from collections.abc import Generator

    from psilonnet.estimators.choosing import Array, Choice
    from psilonnet.estimators.fitting import Problem
    from psilonnet.estimators.jobs import Job
    from psilonnet.training import Run

CUTS = (Cut(4.0, 0.4), Cut(2.0, 0.1))  # the sparsest first
PRUNE_LOSS = 0.02  # the share of the held-out loss that pruning may add


def choose_cut(problem: Problem, choice: Choice) -> Generator[Job, Run, Cut]:
    """Prune the heaviest pick by several cuts; return the one for all."""
    design, strength = choice.picks[0].design, choice.picks[0].strength
    splits = choice.splits
    cuts = [cut for cut in CUTS for _ in splits]
    net = repeat_member(design.make_nets(problem, [0])[0], len(cuts))
    train = rows_of_splits(problem, [a for a, _ in splits], len(CUTS))
    run = yield design.job(net, problem, train, None, [strength] * len(cuts), prune=cuts)
    warn_lost(run, "the choice of how far to prune")
    outputs = {
        cut: take_setting(run, problem, splits, k)[1]
        for k, cut in enumerate(CUTS)
        if has_all_folds(run, len(splits), k)
    }
    if not outputs:
        return CUTS[-1]
    return _sparsest_good_cut(outputs, choice.heaviest, HeldOut(problem, choice.held_out))


def _sparsest_good_cut(outputs: dict[Cut, Array], dense: Array, held_out: HeldOut) -> Cut:
    """Return the sparsest cut that is good enough on the held-out rows.

    That is so unless its loss, less one standard error of the difference, is more than 2 % above
    the least of all, with and without pruning. If no cut is, the one with the least loss is
    returned.

    Parameters
    ----------
    outputs : dict from Cut to held-out outputs, the sparsest first
    dense : ndarray of held-out outputs without pruning
    held_out : HeldOut
    """
    best = min([dense, *outputs.values()], key=held_out.mean)
    for cut, own in outputs.items():
        if held_out.excess_loss(own, best) <= PRUNE_LOSS:
            return cut
    return min(outputs, key=lambda cut: held_out.mean(outputs[cut]))
