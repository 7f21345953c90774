"""Pruning of what was chosen: several cuts are tried on the folds, from the same snapshots."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from psilonnet.estimators.joint_fit import Job
from psilonnet.estimators.paths import Candidate, make_candidate, warn_lost
from psilonnet.training import Callback, DivergedError, Pruning, members_of, take_members

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from psilonnet.estimators.folds import Folds
    from psilonnet.estimators.problem import View
    from psilonnet.estimators.progress import Progress
    from psilonnet.estimators.recipe import Recipe
    from psilonnet.estimators.selection import Array, HeldOut
    from psilonnet.training import Run, RunState


class Cut(NamedTuple):
    """How far to prune: the norm of the rows at the beginning, the share of the bound to drop."""

    row_norm: float
    drop: float


CUTS = (Cut(4.0, 0.4), Cut(2.0, 0.1))  # the sparsest first
PRUNE_LOSS = 0.02  # the share of the held-out loss that pruning may add
PRUNE_STEPS = 0.5  # of the steps of the path
MOST_PRUNED = 2  # candidates that are pruned


class _Steps(Callback):
    def __init__(self, progress: Progress) -> None:
        self.progress = progress

    def on_step(self, run: RunState) -> None:
        """Move the progress bar."""
        self.progress.step()


def prune_candidates(
    folds: Folds,
    recipe: Recipe,
    chosen: Sequence[Candidate],
    held_out: HeldOut | None,
    progress: Progress,
) -> Generator[Job, Run, list[Candidate]]:
    """Return candidates with exact zeros among their weights, and without what is then unused.

    Each goes on from its snapshot, on its own folds, by every cut.
    """
    pruned: list[dict[Cut, Candidate]] = []
    for candidate in chosen:
        view, design = candidate.view, candidate.view.design
        cuts = CUTS if held_out is not None else CUTS[-1:]
        steps = max(1, round(PRUNE_STEPS * recipe.path.steps))
        progress.begin(f"pruning {design.in_words()}", steps, view, len(cuts))
        run = yield _prune_job(view, folds, recipe, candidate, cuts, steps, _Steps(progress))
        warn_lost(run, design)
        n = len(folds.splits)
        found = {}
        for k, cut in enumerate(cuts):
            places = [p for p, member in enumerate(run.members) if member // n == k]
            if len(places) == n:
                net = take_members(run.net, torch.tensor(places)).cpu()
                step = candidate.step + steps
                strength = candidate.strength
                found[cut] = make_candidate(candidate.design, view, folds, strength, step, net)
        pruned.append(found)
    common = [cut for cut in CUTS if all(cut in found for found in pruned)]
    if not common:
        raise DivergedError([], "All networks were lost while they were pruned")
    if held_out is None:
        return [found[common[-1]] for found in pruned]
    outputs = {cut: _mean([found[cut] for found in pruned]) for cut in common}
    cut = _sparsest_good_cut(outputs, _mean(chosen), held_out)
    return [found[cut] for found in pruned]


def _prune_job(
    view: View,
    folds: Folds,
    recipe: Recipe,
    candidate: Candidate,
    cuts: Sequence[Cut],
    steps: int,
    callback: Callback,
) -> Job:
    n = members_of(candidate.trained)
    net = take_members(candidate.trained, torch.arange(n).repeat(len(cuts)))
    train = view.rows([rows for rows, _ in folds.splits] * len(cuts))
    assert train is not None  # a split without training rows is refused before
    norms, drops = zip(*(cut for cut in cuts for _ in range(n)), strict=True)
    stage = Pruning(steps, row_norm=norms, settle=steps // 2, drop=drops)
    rate = partial(_falling_rate, recipe.path.learning_rate / 2)
    every = max(1, steps // 10)
    shared = recipe.plan.matmul_precision == "highest"
    plan = replace(recipe.plan, steps=steps, prune=stage, schedule=rate, evaluate_every=every)
    return Job(
        net=net.to(recipe.device),
        train=train,
        valid=None,
        loss=view.problem.loss,
        strengths=(candidate.strength,) * (n * len(cuts)),
        plan=plan,
        callbacks=(callback,),
        whole=view.whole if view.signs else None,
        name=f"pruning {view.design.in_words()}",
        # The cuts go by the number of a member, so jobs of other numbers of folds stay apart.
        kind=view.kind_of(net, stage, recipe.path.learning_rate) if shared else None,
    )


def _falling_rate(highest: float, share: float) -> float:
    return highest * (1 - 0.95 * share)


def _mean(candidates: Sequence[Candidate]) -> Array:
    return np.asarray(np.mean([c.outputs for c in candidates], axis=0))


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
    best = min([dense, *outputs.values()], key=lambda own: float(held_out.reported(own)))
    for cut, own in outputs.items():
        if held_out.excess_loss(own, best) <= PRUNE_LOSS:
            return cut
    return min(outputs, key=lambda cut: float(held_out.reported(outputs[cut])))
