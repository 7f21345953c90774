"""What a fit asks for: populations to train, one after the other.

A fit is a generator that yields jobs and gets the finished runs, so that it need not know whether
its networks were trained alone or beside those of other fits (see ``together.py``).
"""

from __future__ import annotations

from collections.abc import Generator, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from psilonnet.nn import path_norm_penalty
from psilonnet.training import Run

if TYPE_CHECKING:
    from psilonnet.nn import Network
    from psilonnet.training import Callback, Plan, Rows

Fitting = Generator["Job", Any, Any]


@dataclass(frozen=True)
class Job:
    """A population to train.

    Attributes
    ----------
    kind : hashable
        Jobs of one kind differ in rows, starts and strengths only.
    """

    net: Network
    train: Rows
    valid: Rows | None
    loss: str
    strengths: tuple[float, ...]
    plan: Plan
    callbacks: tuple[Callback, ...]
    kind: Hashable

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
        )
        run.train()
        return run


def finish(fitting: Fitting) -> None:
    """Train what a fit asks for, until it asks for nothing more."""
    try:
        job = next(fitting)
        while True:
            job = fitting.send(job.run())
    except StopIteration:
        return
