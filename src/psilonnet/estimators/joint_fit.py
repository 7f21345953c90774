"""A fit as a generator of populations to train, so that many fits can share them.

A fit yields jobs and gets the finished runs, so that it need not know whether its networks were
trained alone or beside those of other fits. A step of a small network costs mostly calls, not
arithmetic, and a population makes them once. Only fits that see all their rows in every step
share: then the padding has no weight, the order of the rows does not matter, and each model
minimises what it would minimise alone.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import torch

from psilonnet.nn import path_norm_penalty
from psilonnet.training import (
    Callback,
    DivergedError,
    History,
    Rows,
    Run,
    join_populations,
    members_of,
    take_members,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Tensor, nn

    from psilonnet.nn import Network
    from psilonnet.training import Loss, Plan, RunState

Result = TypeVar("Result")
Fitting = Generator["Job", Any, Result]
Outcome = Any  # a finished run or part of one, or the exception that ended it

# The most parameters of a shared population, set by hand: beyond it a step is mostly arithmetic.
LARGEST = 2**20


@dataclass(frozen=True)
class Job:
    """A population to train.

    Attributes
    ----------
    whole : callable, or None
        What of the networks is trained, as in :class:`Run`.
    kind : hashable
        Jobs of one kind differ in rows, starts and strengths only. None: it trains alone.
    name : str
        What is trained, for callbacks that a user gives.
    """

    net: Network
    train: Rows
    valid: Rows | None
    loss: str | Loss
    strengths: tuple[float, ...]
    plan: Plan
    callbacks: tuple[Callback, ...]
    whole: Callable[[Network], nn.Module] | None = None
    kind: Hashable = None
    name: str = ""

    def run(self) -> Run:
        """Train the population and return the finished run."""
        run = Run(
            self.net,
            self.train,
            self.valid,
            loss=self.loss,
            penalty=path_norm_penalty,
            reg_strength=torch.tensor(self.strengths, dtype=torch.float32),
            plan=self.plan,
            callbacks=self.callbacks,
            whole=self.whole,
            name=self.name,
        )
        run.train()
        return run


def finish(fitting: Fitting[Any], callbacks: tuple[Callback, ...] = ()) -> None:
    """Train what a fit asks for, with further callbacks, until it asks for nothing more."""
    outcome: Outcome = None
    with closing(fitting):  # whose bar would else stay below the traceback of Ctrl-C
        while True:
            asked = _advance(fitting, outcome)
            if asked is None:
                return
            if isinstance(asked, Exception):
                raise asked
            outcome = _run_alone(replace(asked, callbacks=(*asked.callbacks, *callbacks)))


class Fits(Protocol):
    """What can be fitted by jobs."""

    def _fitting(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, validation_data: Any
    ) -> Fitting[None]:
        """Fit, and yield the populations that have to be trained for it."""

    def free_candidates(self) -> Any:
        """Free the memory of the networks that were not chosen."""


def fit_together(
    models: Sequence[Fits], tables: Iterable[tuple[Any, Any]]
) -> list[Exception | None]:
    """Fit each model to its own table ``(X, y)``; return what went wrong with each, or None.

    No candidates are kept: the models have no :meth:`with_selection`.
    """
    fits = [
        model._fitting(X, y, None, None, None) for model, (X, y) in zip(models, tables, strict=True)
    ]
    errors: dict[int, Exception] = {}
    outcomes: dict[int, Outcome] = dict.fromkeys(range(len(fits)))
    while outcomes:
        asked = {number: _advance(fits[number], given) for number, given in outcomes.items()}
        jobs = {number: job for number, job in asked.items() if isinstance(job, Job)}
        errors |= {number: error for number, error in asked.items() if isinstance(error, Exception)}
        for number in asked.keys() - jobs.keys() - errors.keys():
            models[number].free_candidates()  # of many models they would fill the memory
        outcomes = {}
        for numbers in _shared(jobs):
            results = _run([jobs[number] for number in numbers])
            outcomes.update(zip(numbers, results, strict=True))
    return [errors.get(number) for number in range(len(fits))]


def _advance(fitting: Fitting[Any], outcome: Outcome) -> Job | Exception | None:
    """Give a fit what it waits for; return what it asks for next, None if it has all it needs."""
    try:
        if isinstance(outcome, Exception):
            return fitting.throw(outcome)
        return fitting.send(outcome)
    except StopIteration:
        return None
    except Exception as error:
        return error


def _shared(jobs: dict[int, Job]) -> list[list[int]]:
    """Return which jobs run together."""
    kinds: dict[Hashable, list[int]] = {}
    for number, job in jobs.items():
        kinds.setdefault((job.kind, number if job.kind is None else None), []).append(number)
    parts = []
    for numbers in kinds.values():
        size = sum(p.numel() for p in jobs[numbers[0]].net.parameters())
        most = max(1, LARGEST // size)
        count = -(-len(numbers) // most)  # populations of nearly equal size
        parts += [numbers[k::count] for k in range(count)]
    return parts


def _run(jobs: Sequence[Job]) -> list[Outcome]:
    """Train one population for several jobs; return the outcome of each."""
    if len(jobs) == 1:
        return [_run_alone(jobs[0])]
    joined = _JoinedJobs(jobs)
    try:
        run = joined.job().run()
    except Exception:  # it does not tell which of the jobs failed
        return [_run_alone(job) for job in jobs]
    return [part.or_error() for part in joined.parts(run)]


def _run_alone(job: Job) -> Outcome:
    try:
        return job.run()
    except Exception as error:
        return error


class _JoinedJobs(Callback):
    """Jobs of one kind as one job; their callbacks see a run of their own."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.counts = [members_of(job.net) for job in jobs]
        self.starts = [sum(self.counts[:k]) for k in range(len(jobs))]

    def job(self) -> Job:
        """Return the job that trains all members of all jobs."""
        first = self.jobs[0]
        valid = [job.valid for job in self.jobs]
        return replace(
            first,
            net=join_populations([job.net for job in self.jobs]),
            train=_join([job.train for job in self.jobs], self.counts),
            valid=None if None in valid else _join(cast("list[Rows]", valid), self.counts),
            strengths=tuple(s for job in self.jobs for s in job.strengths),
            callbacks=(self,),
        )

    def parts(self, run: RunState) -> list[_Part]:
        """Return what belongs to each job."""
        averaged = cache(run.averaged_net)  # one copy for all
        pairs = zip(self.starts, self.counts, strict=True)
        return [_Part(run, start, count, averaged) for start, count in pairs]

    def on_evaluation(self, run: RunState) -> None:
        """Call the callbacks of each job, and drop the members that they drop."""
        parts = self.parts(run)
        for part, job in zip(parts, self.jobs, strict=True):
            for callback in job.callbacks if part.members else ():
                callback.on_evaluation(cast("RunState", part))
        keep = torch.cat([part.places for part in parts])
        if len(keep) < len(run.members):
            run.drop(keep=keep)


class _Part:
    """The members of one job within a run, as the run that the job would see alone."""

    def __init__(
        self, run: RunState, start: int, count: int, averaged: Callable[[], Network]
    ) -> None:
        self._averaged = averaged
        self._run, self.plan, self.step = run, run.plan, run.step
        own = range(start, start + count)
        self._start = start
        self.places = torch.tensor([p for p, m in enumerate(run.members) if m in own]).long()
        self.history = _history_of(run.history, own)

    @property
    def members(self) -> list[int]:
        """The numbers of the members still in training, counted from the first of the job."""
        return [self._run.members[p] - self._start for p in self.places.tolist()]

    @property
    def net(self) -> Network:
        """The members still in training."""
        return take_members(self._run.net, self.places)

    def averaged_net(self) -> Network:
        """Return the members with the average of their weights."""
        return take_members(self._averaged(), self.places)

    @property
    def reg_strength(self) -> Tensor:
        """Their strengths."""
        return self._run.reg_strength[self.places]

    def drop(self, keep: Tensor) -> None:
        """Go on with some of the members only."""
        self.places = self.places[keep]

    def or_error(self) -> Outcome:
        """Return the part, or the error that a run without members would have raised."""
        return self if self.members else DivergedError(self.history.diverged)


def _history_of(history: History, own: range) -> History:
    """Return the columns of some members."""
    lines = {
        name: [line[own.start : own.stop] for line in column]
        for name, column in history.lines.items()
    }
    lost = [d for d in history.diverged if d.member in own]
    diverged = [replace(d, member=d.member - own.start) for d in lost]
    return replace(history, members=len(own), lines=lines, diverged=diverged)


def _join(rows: Sequence[Rows], counts: Sequence[int]) -> Rows:
    """Return tables below each other, each seen by the members of its job only."""
    most = max(part.count for part in rows)
    owns, start = [], 0
    for part, count in zip(rows, counts, strict=True):
        own = torch.arange(part.count).repeat(count, 1) if part.own is None else part.own
        own = torch.where(own < 0, -1, own + start)
        owns.append(torch.nn.functional.pad(own, (0, most - part.count), value=-1))
        start += len(part.x)
    weight = torch.cat([cast("Tensor", part.weight) for part in rows])
    x, y = torch.cat([part.x for part in rows]), torch.cat([part.y for part in rows])
    return Rows(x, y, weight, torch.cat(owns))
