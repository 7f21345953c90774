"""Recipes that replay cannot judge, trained anew on a split that the search had not seen.

What changes how a network is trained, and not only which snapshots are kept, needs a training of
its own: our estimators on 2,000 rows of the tables of the search, once as they come and once for
each other setting or constant. The validation part judges; the test part is not touched.

    python -m experiments.studies.finalists --data DIR [--so-far]

It writes ``finalists.csv``; the last line is one JSON object: for each trial the loss over that of
the recipe as it is, in the geometric mean, and the time of all fits over that of all its fits.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from statistics import geometric_mean
from time import process_time
from typing import TYPE_CHECKING, Any

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import load_table, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss
from experiments.studies.replay import TABLES
from psilonnet.estimators import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from experiments.cells import Cell

SEED = 2  # the search has seen seed 0


@dataclass(frozen=True)
class Trial:
    """Settings of the estimators, and constants of the rules of their paths."""

    settings: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, float] = field(default_factory=dict)


AS_IT_IS = "as it is"
TRIALS = {
    AS_IT_IS: Trial(),
    "level parts are never cut": Trial(constants={"RISES": inf}),
}


@contextmanager
def constants(values: dict[str, float]) -> Iterator[None]:
    """Change constants of the paths for a while; a cell has a process or a turn of its own."""
    before = {name: getattr(paths, name) for name in values}
    try:
        for name, value in values.items():
            setattr(paths, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(paths, name, value)


def all_cells() -> list[Cell]:
    """Return a cell for each trial and table."""
    return [{"trial": t, "dataset": name, "seed": SEED} for t in TRIALS for name in TABLES]


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit one trial on one table, and judge it on the validation part."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"])
    trial = TRIALS[cell["trial"]]
    with constants(trial.constants):
        begin = process_time()
        model = fit_ours(table.task, parts, "user", **trial.settings)
        seconds = process_time() - begin
    loss = reported_loss(table.task, mean_loss(table.task, model, parts["valid"]))
    return {"valid_loss": loss, "seconds": seconds, "bound": model.lipschitz_bound_}


def summary(lines: list[Cell]) -> dict[str, Any]:
    """Return how each trial compares with the recipe as it is, on the tables that both have."""
    found = {(line["trial"], line["dataset"]): line for line in lines}
    told = {}
    for trial in TRIALS:
        names = [name for name in TABLES if {(trial, name), (AS_IT_IS, name)} <= set(found)]
        if trial == AS_IT_IS or not names:
            continue
        pairs = [(found[trial, name], found[AS_IT_IS, name]) for name in names]
        told[trial] = {
            "tables": len(names),
            "loss": geometric_mean(a["valid_loss"] / b["valid_loss"] for a, b in pairs),
            "time": sum(a["seconds"] for a, _ in pairs) / sum(b["seconds"] for _, b in pairs),
        }
    return told


def main() -> None:
    """Run what is missing and write ``finalists.csv``."""
    arguments = experiment_arguments("Recipes trained anew.", so_far=True)
    results = run_study("finalists", compute, all_cells(), arguments)
    if arguments.only:
        return
    lines = [{**cell, **results[cell]} for cell in all_cells() if cell in results]
    if lines:
        write_csv(lines, arguments.results / "finalists.csv")
    print(json.dumps(summary(lines)))


if __name__ == "__main__":
    main()
