"""The choice on held-out rows: which strengths, with knots or without, and their average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.estimators.fitting import (
    Pick,
    averaged,
    forward,
    history_of,
    rows_of_splits,
    warn_lost,
)
from psilonnet.training import (
    NARROWING,
    Callback,
    DivergedError,
    Narrowing,
    get_loss,
    repeat_member,
    take_members,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from psilonnet.estimators.fitting import Average, Design, Problem
    from psilonnet.estimators.jobs import Job
    from psilonnet.estimators.splits import Split
    from psilonnet.nn import Network
    from psilonnet.training import Run, RunState

Array = np.ndarray[Any, Any]

SHORT = 1000  # steps; below, no strength is dropped on the way
# An average and one standard error need neighbours of the best strength trained to the end.
RUNGS = {
    "average": ((0.05, 8), (0.3, 4), (0.5, 3)),
    "best": NARROWING,
    "one_standard_error": ((0.05, 8), (0.3, 5)),
}
ROUNDS = 30  # of the greedy average


class _Recorder(Callback):
    """Keeps the last sparsities of every member, also of those that are dropped."""

    def __init__(self) -> None:
        self.last: dict[int, tuple[int, float, float]] = {}

    def on_evaluation(self, run: RunState) -> None:
        """Note step, near-sparsity and exact sparsity."""
        near, exact = run.net.near_sparsity().tolist(), run.net.exact_sparsity().tolist()
        for position, member in enumerate(run.members):
            self.last[member] = (run.step, near[position], exact[position])


@dataclass(frozen=True)
class _Candidate:
    """A strength of a design that was trained to the end on every split.

    Attributes
    ----------
    loss : float
        The mean held-out loss.
    nets : Network
        One member per split.
    outputs : ndarray of shape (held-out rows, outputs)
        Of networks that were not trained on these rows.
    history : dict of lists, one entry per evaluation
    """

    design: Design
    strength: float
    loss: float
    nets: Network
    outputs: Array
    history: dict[str, list[float]]


@dataclass(frozen=True)
class Choice:
    """What was chosen on the held-out rows.

    Attributes
    ----------
    picks : list of Pick
        The heaviest first.
    path : dict of lists, one entry per number of knots and strength
    history : dict of lists
        Of the heaviest.
    held_out : ndarray of row numbers
    outputs : ndarray of shape (held-out rows, outputs)
        The average of the outputs of networks that were not trained on these rows.
    net : Average
        Of the networks that were picked, as trained on the splits.
    splits : sequence of Split
    heaviest : ndarray of shape (held-out rows, outputs)
        The same of the heaviest alone.
    """

    picks: list[Pick]
    path: dict[str, list[float]]
    history: dict[str, list[float]]
    held_out: Array
    outputs: Array
    net: Average
    splits: Sequence[Split]
    heaviest: Array


def choose(
    problem: Problem,
    splits: Sequence[Split],
    strengths: Sequence[float],
    designs: Sequence[Design],
    selection: str,
) -> Generator[Job, Run, Choice]:
    """Train all strengths of each design on all splits, and choose by the held-out loss."""
    held = np.concatenate([rows for _, rows in splits])
    candidates: list[_Candidate] = []
    paths = []
    for design in designs:
        found, path = yield from _try_strengths(problem, splits, strengths, design, selection)
        candidates += found
        paths.append(path)
    weights = SELECTION_RULES[selection](candidates, HeldOut(problem, held))
    order = sorted(np.flatnonzero(weights), key=lambda k: -weights[k])
    picked = [candidates[k] for k in order]
    shares = [float(weights[k]) for k in order]
    return Choice(
        picks=[Pick(c.design, c.strength, w) for c, w in zip(picked, shares, strict=True)],
        path={name: [v for path in paths for v in path[name]] for name in paths[0]},
        history=picked[0].history,
        held_out=held,
        outputs=np.tensordot(shares, np.stack([c.outputs for c in picked]), axes=1),
        net=averaged(problem, [c.nets for c in picked], [w for w in shares for _ in splits]),
        splits=splits,
        heaviest=picked[0].outputs,
    )


def _try_strengths(
    problem: Problem,
    splits: Sequence[Split],
    strengths: Sequence[float],
    design: Design,
    selection: str,
) -> Generator[Job, Run, tuple[list[_Candidate], dict[str, list[float]]]]:
    """Train all strengths on all splits as one population."""
    n = len(splits)
    design.check_memory(problem, n * len(strengths))
    net = repeat_member(design.make_nets(problem, [0])[0], n * len(strengths))
    train = rows_of_splits(problem, [a for a, _ in splits], len(strengths))
    valid = rows_of_splits(problem, [b for _, b in splits], len(strengths))
    spread = [strength for strength in strengths for _ in splits]
    recorder = _Recorder()
    # A short training is cheap, and its first losses tell too little about its last.
    narrowing = [Narrowing(RUNGS[selection])] if design.plan.steps >= SHORT else []
    run = yield design.job(net, problem, train, valid, spread, recorder, *narrowing)

    warn_lost(run, "the choice of the strength")
    losses = run.history.last("valid_loss").reshape(-1, n).mean(dim=1)
    # A strength counts only if none of its folds was lost.
    whole = [
        k for k in range(len(strengths)) if has_all_folds(run, n, k) and bool(losses[k].isfinite())
    ]
    if not whole:
        raise DivergedError(run.history.diverged)
    candidates = []
    for k in whole:
        nets, outputs = take_setting(run, problem, splits, k)
        history = history_of(run, [k * n + f for f in range(n)])
        strength = float(strengths[k])
        candidates.append(_Candidate(design, strength, float(losses[k]), nets, outputs, history))
    path = _path(run, recorder, strengths, n)
    return candidates, {"knots": [float(design.knots)] * len(strengths), **path}


def has_all_folds(run: Run, folds: int, k: int) -> bool:
    """Return whether the networks of all folds of the k-th strength or cut are left."""
    return {k * folds + f for f in range(folds)} <= {*run.members}


def take_setting(
    run: Run, problem: Problem, splits: Sequence[Split], k: int
) -> tuple[Network, Array]:
    """Return the networks of the k-th strength or cut, and their outputs on the held-out rows.

    There is one network per split; its outputs are on the rows held out from it.
    """
    n = len(splits)
    places = [p for p, member in enumerate(run.members) if member // n == k]
    nets = take_members(run.net, torch.tensor(places)).cpu()
    outputs = [
        forward(take_members(nets, torch.tensor([fold])), problem.seen[torch.as_tensor(held)])
        for fold, (_, held) in enumerate(splits)
    ]
    return nets, np.concatenate(outputs)


def _path(
    run: Run, recorder: _Recorder, strengths: Sequence[float], n: int
) -> dict[str, list[float]]:
    """Return, for each strength, what was seen of it last."""
    ends = (run.history.last("valid_loss"), run.history.last("penalty"))
    valid, bound = (end.reshape(-1, n).mean(dim=1) for end in ends)
    lines = [recorder.last.get(m, (0, np.nan, np.nan)) for m in range(n * len(strengths))]
    seen = np.array(lines).reshape(-1, n, 3).mean(axis=1)
    order = np.argsort(strengths)
    columns = {
        "reg_strength": np.array(strengths, dtype=float),
        "valid_loss": valid.numpy(),
        "bound": bound.numpy(),
        "near_sparsity": seen[:, 1],
        "sparsity": seen[:, 2],
        "steps": seen[:, 0],
    }
    return {name: column[order].tolist() for name, column in columns.items()}


class HeldOut:
    """The loss on the held-out rows."""

    def __init__(self, problem: Problem, held: Array) -> None:
        rows = torch.as_tensor(held)
        self.y = problem.y[rows].double()
        weight = problem.weight[rows].double()
        self.weight = weight / weight.mean()
        self.loss = get_loss(problem.loss)

    def losses(self, outputs: Array) -> torch.Tensor:
        """Return the weighted loss of each row, of shape (..., rows)."""
        return self.loss(torch.as_tensor(outputs), self.y) * self.weight

    def mean(self, outputs: Array) -> float:
        """Return the mean loss."""
        return float(self.losses(outputs).mean())

    def excess_loss(self, outputs: Array, reference: Array) -> float:
        """Return by which share the loss is above that of a reference, less one standard error."""
        losses = self.losses(reference)
        more = self.losses(outputs) - losses
        error = more.std(correction=0) / len(more) ** 0.5
        return float((more.mean() - error) / losses.mean().clamp(min=1e-300))


def _all_weight_on(candidates: Sequence[_Candidate], k: int) -> Array:
    """Return a weight of 1 for one candidate, and 0 for all others."""
    return np.asarray(np.arange(len(candidates)) == k, dtype=float)


def _best_weights(candidates: Sequence[_Candidate], held_out: HeldOut) -> Array:
    """Return all weight on the candidate with the least loss."""
    return _all_weight_on(candidates, int(np.argmin([c.loss for c in candidates])))


def _one_standard_error_weights(candidates: Sequence[_Candidate], held_out: HeldOut) -> Array:
    """Return all weight on the strongest candidate within a standard error of the best."""
    best = candidates[int(_best_weights(candidates, held_out).argmax())]
    losses = held_out.losses(best.outputs)
    limit = best.loss + float(losses.std(correction=min(1, len(losses) - 1))) / len(losses) ** 0.5
    ranks = [(c.strength, -c.loss) if c.loss <= limit else (-1.0, 0.0) for c in candidates]
    return _all_weight_on(candidates, max(range(len(ranks)), key=ranks.__getitem__))


def _average_weights(candidates: Sequence[_Candidate], held_out: HeldOut) -> Array:
    """Return the weights of the candidates that go best together."""
    outputs = np.stack([c.outputs for c in candidates])  # (candidates, rows, outputs)
    return greedy_weights(outputs, lambda averages: held_out.losses(averages).mean(dim=-1).numpy())


def greedy_weights(outputs: Array, losses_of: Callable[[Array], Array]) -> Array:
    """Return the weights of members that are picked one by one, with repetition.

    Each pick is the one that makes the loss of the average least; of all lengths of the list, the
    one with the least loss is taken.

    Parameters
    ----------
    outputs : ndarray of shape (members, ...)
    losses_of : callable
        Maps averages, of the shape of outputs, to their losses.
    """
    total, counts = np.zeros_like(outputs[0]), np.zeros(len(outputs))
    least, best = np.inf, np.zeros(len(outputs))
    for number in range(1, ROUNDS + 1):
        losses = losses_of((total + outputs) / number)
        pick = int(losses.argmin())
        total += outputs[pick]
        counts[pick] += 1
        if float(losses[pick]) < least:
            least, best = float(losses[pick]), counts / number
    return best


SELECTION_RULES = {
    "average": _average_weights,
    "best": _best_weights,
    "one_standard_error": _one_standard_error_weights,
}
