"""The training of the designs: one warm path per fold, whose snapshots are the candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from psilonnet._warnings import warn_user
from psilonnet.certify import increasing_term, input_moves
from psilonnet.deploy import compact_parts
from psilonnet.estimators.joint_fit import Job
from psilonnet.estimators.problem import View
from psilonnet.nn import AveragedNet, Part, PlainNet
from psilonnet.training import Callback, DivergedError

if TYPE_CHECKING:
    from collections.abc import Generator

    from psilonnet.estimators.designs import Design
    from psilonnet.estimators.folds import Folds
    from psilonnet.estimators.progress import Progress
    from psilonnet.estimators.recipe import Recipe
    from psilonnet.nn import Network
    from psilonnet.training import Plan, RisingPath, Run, RunState

Array = np.ndarray[Any, Any]

# The level part of a path goes on, by a fifth of its steps at a time, while the mean held-out loss
# has fallen by more than this share over the last such part; it is at most this many times as long.
FALLS, LONGEST, PART = 0.01, 4, 0.2
# It ends early where that loss has risen by more than this share over its least: the networks only
# learn by heart then, and the rise passes over the weakest strengths, too.
RISES = 0.02
# From so far along its rise on a design is given up if it is so much worse than the best before.
GIVE_UP_FROM, HOPELESS = 0.25, 0.05


class LostNetworksWarning(UserWarning):
    """Some networks diverged in training, and the model is made of the others."""


@dataclass(frozen=True)
class Candidate:
    """Networks of one design at one strength, one for each fold.

    Attributes
    ----------
    design : int
        Its number among the designs.
    strength : float
    step : int
        After how many steps they were taken.
    view : View
        What they see.
    trained : Network
        The networks as they were trained.
    outputs : ndarray of shape (held-out rows, outputs)
        Of networks that were not trained on these rows.
    bound : float
        How far the outputs of the average can move, summed, if every column moves by 1.
    near_sparsity, sparsity : float
    """

    design: int
    strength: float
    step: int
    view: View
    trained: Network
    outputs: Array
    bound: float
    near_sparsity: float
    sparsity: float

    def make_net(self) -> AveragedNet:
        """Return the plain average of the networks: folded weights, numbers of float32."""
        return _fold_average(self.view, self.trained)


class _Snapshot(NamedTuple):
    strength: float
    step: int
    net: Network


class _PathKeeper(Callback):
    """Takes snapshots where the strengths are reached; extends the level part, or gives up."""

    def __init__(self, recipe: Recipe, folds: int, progress: Progress, best: float) -> None:
        self.recipe, self.folds, self.progress, self.best = recipe, folds, progress, best
        self.path: RisingPath = recipe.path
        self.snapshots: list[_Snapshot] = []

    def on_step(self, run: RunState) -> None:
        """Move the progress bar."""
        self.progress.step()

    def on_evaluation(self, run: RunState) -> None:
        """Look where on the path the run is."""
        losses = run.history.valid_loss.mean(dim=1).tolist()
        self.progress.tell(losses[-1])
        if run.step == self.path.level and self._falls(run, losses):
            extra = max(1, round(PART * self.recipe.path.level))
            self.path = self.path.extended(extra)
            run.plan = _marked_plan(self.path, self.recipe)
            self.progress.extend(extra)
            return
        if self._rises(run, losses):
            path = self.path.shortened(run.step, self.recipe.passed)
            self.progress.extend(path.steps - self.path.steps)
            self.path = path
            run.plan = _marked_plan(self.path, self.recipe)
        strength = self._marks().get(run.step)
        if strength in self.recipe.asked and len(run.members) == self.folds:
            strength *= self.recipe.factor
            self.snapshots.append(_Snapshot(strength, run.step, run.averaged_net().cpu()))
        self._give_up(run, losses)

    def _marks(self) -> dict[int, float]:
        """Return the strength at each step where a snapshot is taken."""
        early = {s: self.path.strengths[0] for s in self.recipe.early if s < self.path.level}
        last = dict(zip(self.path.strengths, self.path.marks, strict=True))  # of each strength
        return early | {step: strength for strength, step in last.items()}

    def _falls(self, run: RunState, losses: list[float]) -> bool:
        longest = LONGEST * self.recipe.path.level
        if not self.recipe.may_extend or self.path.level >= longest:
            return False
        before = run.step - PART * self.recipe.path.level
        earlier = [k for k, step in enumerate(run.history.step) if step <= before]
        return bool(earlier) and losses[-1] < (1 - FALLS) * losses[earlier[-1]]

    def _rises(self, run: RunState, losses: list[float]) -> bool:
        too_long = run.step < self.path.level and losses[-1] > (1 + RISES) * min(losses)
        return self.recipe.may_extend and too_long

    def _give_up(self, run: RunState, losses: list[float]) -> None:
        done = (run.step - self.path.level) / max(1, self.path.rise)
        if self.recipe.may_extend and GIVE_UP_FROM <= done < 1:
            reached = [
                v for s, v in zip(run.history.step, losses, strict=True) if s >= self.path.level
            ]
            if min(reached) > (1 + HOPELESS) * self.best:
                self.progress.extend(run.step - run.plan.steps)
                run.plan = replace(run.plan, steps=run.step)


class Trained(NamedTuple):
    """What came of the designs: candidates, and of each design its history."""

    candidates: list[Candidate]
    histories: list[dict[str, list[float]]]


def train_designs(folds: Folds, recipe: Recipe, progress: Progress) -> Generator[Job, Run, Trained]:
    """Train all designs on all folds, each as one population."""
    shape = (recipe.width, recipe.depth, recipe.plan.seed)
    views = [View(folds.problem, design, *shape) for design in recipe.designs]
    progress.plan([(view, recipe.path.steps) for view in views])
    candidates: list[Candidate] = []
    histories: list[dict[str, list[float]]] = []
    best, lost = float("inf"), DivergedError([])
    for number, view in enumerate(views):
        design = view.design
        keeper = _PathKeeper(recipe, len(folds.splits), progress, best)
        progress.begin(design.in_words(), recipe.path.steps, view)
        try:
            run = yield _path_job(view, folds, recipe, keeper)
        except DivergedError as error:  # of one design; others may do
            lost = error
            histories.append({})
            if len(recipe.designs) > 1:
                warn_user(
                    f"The design {design.in_words()!r} is left out. {error}", LostNetworksWarning
                )
            continue
        warn_lost(run, design)
        history = _history_of(run)
        histories.append(history)
        own = [make_candidate(number, view, folds, *taken) for taken in keeper.snapshots]
        candidates += [c for c in own if np.isfinite(c.outputs).all() and np.isfinite(c.bound)]
        best = min([best, *history["valid_loss"]])
    if not candidates:
        raise lost
    return Trained(candidates, histories)


def _path_job(view: View, folds: Folds, recipe: Recipe, keeper: _PathKeeper) -> Job:
    """Return the job that trains a design along the path."""
    net = view.make_population(len(folds.splits), recipe.plan.batch_size)
    train = view.rows([train for train, _ in folds.splits])
    assert train is not None  # a split without training rows is refused before
    shared = recipe.plan.matmul_precision == "highest" and not recipe.may_extend
    return Job(
        net=net.to(recipe.device),
        train=train,
        valid=view.rows([held for _, held in folds.splits]),
        loss=view.problem.loss,
        strengths=(recipe.factor,) * len(folds.splits),
        plan=_marked_plan(recipe.path, recipe),
        callbacks=(keeper,),
        name=view.design.in_words(),
        whole=view.whole if view.signs else None,
        kind=view.kind_of(net, recipe.path, replace(recipe.plan, seed=0)) if shared else None,
    )


def _marked_plan(path: RisingPath, recipe: Recipe) -> Plan:
    """Return the plan of a path, evaluated where snapshots are taken or it may be extended."""
    plan, part = path.plan(recipe.plan), round(PART * recipe.path.level)
    before = range(path.level, 0, -part) if part else ()
    marks = (*recipe.early, *before, *plan.marks)
    return replace(plan, marks=marks, evaluate_every=path.steps)


def make_candidate(
    number: int, view: View, folds: Folds, strength: float, step: int, net: Network
) -> Candidate:
    """Return the networks of all folds, with what is known of them once they are folded."""
    averaged = _fold_average(view, net)
    eye = torch.eye(view.problem.outputs, dtype=torch.float64)
    return Candidate(
        design=number,
        strength=strength,
        step=step,
        view=view,
        trained=net,
        outputs=_held_out_outputs(averaged, folds),
        bound=float(input_moves(averaged, eye).sum()),
        near_sparsity=float(net.near_sparsity().mean()),
        sparsity=float(net.exact_sparsity().mean()),
    )


@torch.no_grad()
def _fold_average(view: View, net: Network) -> AveragedNet:
    """Return the plain average of a population as numbers of float32.

    What pruning has left without use is removed.
    """
    layers = [layer.rounded() for layer in PlainNet(net).layers]
    members, columns = len(layers[0].weight), view.problem.x.shape[1]
    weight = torch.full((members,), 1 / members, dtype=torch.float64)
    part = Part(PlainNet.of_layers(layers), weight, view.columns, torch.arange(columns))
    is_pruned = float(net.layers[0].prune_mix) > 0
    parts, signs = compact_parts(part) if is_pruned else [part], view.problem.signs
    if signs is not None:  # of the numbers that are kept, so that it holds for them
        terms = [increasing_term(own.net, signs[own.inputs]) for own in parts]
        parts = [replace(p, increasing=term) for p, term in zip(parts, terms, strict=True)]
    return AveragedNet(parts, columns)


def _held_out_outputs(net: AveragedNet, folds: Folds) -> Array:
    """Return the outputs of each held-out row, by networks that were not trained on it."""
    x = folds.problem.x
    pairs = zip(net.singles(), folds.splits, strict=True)
    return folds.average([single(x[torch.as_tensor(held)]).numpy() for single, (_, held) in pairs])


def _history_of(run: Run) -> dict[str, list[float]]:
    """Return the evaluations of a run, averaged over the members that are left."""
    history, own = run.history, list(run.members)
    return {
        "step": [float(s) for s in history.step],
        "train_loss": history.train_loss[:, own].mean(dim=1).tolist(),
        "valid_loss": history.valid_loss[:, own].mean(dim=1).tolist(),
        "penalty": history.penalty[:, own].mean(dim=1).tolist(),
    }


def warn_lost(run: Run, design: Design) -> None:
    """Warn if members of a run diverged."""
    lost = run.history.diverged
    if lost:
        warn_user(
            f"{len(lost)} of {run.history.members} networks of the design {design.in_words()!r} "
            f"diverged in training, the first at step {lost[0].step} with loss "
            f"{lost[0].loss:.3g}. What the design had reached before is kept, and the other "
            "designs go on. A lower 'learning_rate' may keep them; so may columns and a target "
            "without extreme values.",
            LostNetworksWarning,
        )
