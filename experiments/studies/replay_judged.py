"""Recipes judged by replay: no training, only the outputs that ``experiments.studies.replay`` kept.

A trial is a set of designs in the order of their training, a rule that gives designs up, how many
may be averaged, and the weight of the bound. It is judged by its loss on the validation parts over
CatBoost's, and by its rank among CatBoost, LightGBM and itself; a difference from the first trial,
the recipe before, counts beyond two standard errors over tables and seeds.

    python -m experiments.studies.replay_judged --data DIR [--only SEED ...]

It writes ``replay.csv`` with a line for each trial, failures included, or nothing if only some
seeds are judged. The last line is one JSON object: the first trial and the best one.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, replace
from functools import cache
from math import log
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.cells import experiment_arguments, write_csv
from experiments.data import reported_loss
from experiments.gather import StudyResults
from experiments.studies.replay import DESIGNS, NAME, SEEDS, TABLES, outputs_path
from psilonnet.estimators import DESIGNS as DEFAULT
from psilonnet.estimators import greedy_weights
from psilonnet.estimators import paths as rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from experiments.cells import Cell

Array = np.ndarray[Any, Any]
FOLDS = 5
RIVALS = ("CatBoost", "LightGBM")
LARGEST_SET = 4
NOW = ("L1", "L1, 8 pieces", "L2", "L2, 8 pieces")


@dataclass(frozen=True)
class GiveUp:
    """A design is given up so far along its rise if it is so much worse than the best before."""

    share: float = 0.75
    excess: float = 0.15


@dataclass(frozen=True)
class Trial:
    """What is judged."""

    name: str
    designs: tuple[str, ...] = NOW
    give_up: GiveUp | None = None
    most: int = 4
    weight: float = 0.01


class Trained(NamedTuple):
    """A design that was trained on a table: its snapshots, and what they give."""

    known: Cell
    held_out: Array
    valid: Array

    def until(self, step: float) -> Trained:
        """Return what is there after so many steps."""
        keep = np.flatnonzero(np.array(self.known["steps"]) <= step)
        steps = self.known["history"]["step"]
        share = min(1.0, step / steps[-1])
        known = self.known | {
            "bounds": [self.known["bounds"][k] for k in keep],
            "seconds": share * self.known["seconds"],
            "taken": share * steps[-1],
        }
        return Trained(known, self.held_out[keep], self.valid[keep])


class Judgement(NamedTuple):
    """What a trial gives on one table and seed."""

    loss: float
    bound: float
    seconds: float
    member_steps: float


@cache
def read_outputs(path: Path) -> dict[str, Array]:
    """Return the arrays of a file."""
    with np.load(path) as kept:
        return dict(kept)


class Replay:
    """The outputs of all cells, and the rivals' losses."""

    def __init__(self, cells: Path, results: Path, only: Sequence[str] = ()) -> None:
        self.seeds = [seed for seed in SEEDS if not only or str(seed) in only]
        self.folder = cells / f"{NAME}_outputs"
        self.study = StudyResults(cells / NAME)
        with (results / "rivals.csv").open() as file:
            self.rivals = {
                (line["model"], (line["dataset"], int(line["seed"]))): float(line["valid_loss"])
                for line in csv.DictReader(file)
                if line["protocol"] == "user"
            }

    def places(self) -> list[tuple[str, int]]:
        """Return the tables and seeds for which all designs are there."""
        return [
            (name, seed)
            for seed in self.seeds
            for name in TABLES
            if all({"dataset": name, "seed": seed, "design": d} in self.study for d in DESIGNS)
        ]

    def path(self, name: str, seed: int, design: str) -> Trained:
        """Return a design that was trained."""
        cell = {"dataset": name, "seed": seed, "design": design}
        kept = read_outputs(outputs_path(self.folder, cell))
        return Trained(self.study[cell], kept["held_out"], kept["valid"])

    def truth(self, name: str, seed: int) -> tuple[Array, Array, Array]:
        """Return the targets of held-out rows, their weights, and the targets to be judged by."""
        cell = {"dataset": name, "seed": seed, "design": next(iter(DESIGNS))}
        kept = read_outputs(outputs_path(self.folder, cell))
        return kept["held_out_y"], kept["held_out_weight"], kept["valid_y"]

    def judge(self, trial: Trial, name: str, seed: int) -> Judgement:
        """Choose on the held-out rows, and return the loss on those of the validation part."""
        paths = trained([self.path(name, seed, d) for d in trial.designs], trial.give_up)
        task, unit = paths[0].known["task"], paths[0].known["unit"]
        y, row_weight, valid_y = self.truth(name, seed)
        outputs = np.concatenate([path.held_out for path in paths])
        bounds = np.concatenate([path.known["bounds"] for path in paths])

        def costs(averages: Array, average_bounds: Array) -> Array:
            losses = (row_losses(task, averages, y) * row_weight).mean(axis=-1)
            scale = 0.5 if task == "regression" else 1.0
            return np.asarray(scale * np.log(losses) + trial.weight * np.log1p(average_bounds))

        shares = greedy_weights(outputs, bounds, costs, trial.most)
        chosen = np.flatnonzero(shares)
        valid = np.concatenate([path.valid for path in paths])[chosen]
        average = np.tensordot(shares[chosen], valid, axes=1)
        return Judgement(
            unit * reported_loss(task, float(row_losses(task, average, valid_y).mean())),
            float(shares @ bounds),
            sum(path.known["seconds"] for path in paths),
            FOLDS * sum(path.known["taken"] for path in paths),
        )


def row_losses(task: str, outputs: Array, y: Array) -> Array:
    """Return the squared error or the cross-entropy of each row, of shape (..., rows)."""
    if task == "regression":
        return np.asarray(((outputs - y) ** 2).mean(axis=-1))
    labels = y[:, 0].astype(int)
    if outputs.shape[-1] == 1:
        return np.logaddexp(0, np.where(labels > 0, -1, 1) * outputs[..., 0])
    most = outputs.max(axis=-1)
    total = most + np.log(np.exp(outputs - most[..., None]).sum(axis=-1))
    return np.asarray(total - outputs[..., np.arange(len(labels)), labels])


def trained(paths: Sequence[Trained], rule: GiveUp | None) -> list[Trained]:
    """Return the designs in the order of their training, some of them given up."""
    best, found = float("inf"), []
    for path in paths:
        history = path.known["history"]
        steps, losses = np.array(history["step"]), np.array(history["valid_loss"])
        end = steps[-1]
        if rule is not None:
            end = given_up_at(path, steps, losses, (rule, best))
        found.append(path.until(end))
        best = min(best, losses[steps <= end].min())
    return found


def given_up_at(path: Trained, steps: Array, losses: Array, rule: tuple[GiveUp, float]) -> float:
    """Return the step after which a design is given up, or its last one."""
    give_up, best = rule
    strengths = np.array(path.known["strengths"])
    level = np.array(path.known["steps"])[strengths == strengths.min()].max()
    rises = steps >= level
    least = np.minimum.accumulate(np.where(rises, losses, np.inf))
    late = steps >= level + give_up.share * (steps[-1] - level)
    hopeless = np.flatnonzero(late & (least > (1 + give_up.excess) * best))
    return float(steps[hopeless[0]] if len(hopeless) else steps[-1])


def all_trials() -> list[Trial]:
    """Return what was tried, the recipe before first."""
    now = Trial("recipe before, no design given up")
    default = tuple(design.in_words() for design in DEFAULT)
    single = [Trial(f"only {design}", (design,)) for design in DESIGNS]
    less = [Trial(f"all but {d}", tuple(e for e in DESIGNS if e != d)) for d in DESIGNS]
    return [
        now,
        Trial("the default, no design given up", default),
        Trial("the default", default, GiveUp(rules.GIVE_UP_FROM, rules.HOPELESS)),
        Trial("all designs", tuple(DESIGNS)),
        *single,
        *less,
        *(replace(now, name=f"most {most}", most=most) for most in (1, 2, 3, 6, 10)),
        *(replace(now, name=f"weight {w}", weight=w) for w in (0.0, 0.003, 0.03)),
        *(
            replace(now, name=f"given up from {share} at {excess}", give_up=GiveUp(share, excess))
            for share in (0.25, 0.5, 0.75)
            for excess in (0.05, 0.1, 0.15)
        ),
    ]


def summed_up(trial: Trial, replay: Replay, first: Sequence[float]) -> tuple[Cell, list[float]]:
    """Return the line of a trial, and its losses over CatBoost's as logarithms."""
    places = replay.places()
    found = [replay.judge(trial, *place) for place in places]
    rivals = [[replay.rivals[rival, place] for rival in RIVALS] for place in places]
    logs = [log(own.loss / known[0]) for own, known in zip(found, rivals, strict=True)]
    ranks = [1 + sum(r < own.loss for r in known) for own, known in zip(found, rivals, strict=True)]
    less = [a - b for a, b in zip(logs, first or logs, strict=True)]
    error = stdev(less) / len(less) ** 0.5
    return {
        "trial": trial.name,
        "places": len(places),
        "over_catboost": np.exp(fmean(logs)),
        "wins_over_catboost": sum(x < 0 for x in logs),
        "mean_rank_of_three": fmean(ranks),
        "over_first": np.exp(fmean(less)),
        "standard_error": error,
        "counts": abs(fmean(less)) > 2 * error > 0,
        "median_bound": median(own.bound for own in found),
        "median_seconds": median(own.seconds for own in found),
        "median_member_steps": median(own.member_steps for own in found),
    }, logs


def grown_sets(judge: Callable[[Trial], Cell]) -> None:
    """Judge sets that grow design by design, each time by the one that helps most."""
    designs: tuple[str, ...] = ()
    for _ in range(min(LARGEST_SET, len(DESIGNS))):
        wider = [(*designs, d) for d in DESIGNS if d not in designs]
        found = [judge(Trial("; ".join(sorted(own)), own)) for own in wider]
        designs = min(zip(found, wider, strict=True), key=lambda x: x[0]["over_catboost"])[1]


def main() -> None:
    """Judge all trials, and write ``replay.csv`` if it is of all seeds."""
    arguments = experiment_arguments("Recipes judged by replay.")
    replay = Replay(arguments.cells, arguments.results, arguments.only or ())
    lines: list[Cell] = []
    first: list[float] = []

    def judge(trial: Trial) -> Cell:
        line, logs = summed_up(trial, replay, first)
        first.extend([] if first else logs)
        lines.append(
            {k: round(float(v), 5) if isinstance(v, float) else v for k, v in line.items()}
        )
        print(lines[-1], flush=True)
        return lines[-1]

    for trial in all_trials():
        judge(trial)
    grown_sets(judge)
    if not arguments.only:
        write_csv(lines, arguments.results / "replay.csv")
    print(json.dumps({"first": lines[0], "best": min(lines, key=lambda x: x["over_catboost"])}))


if __name__ == "__main__":
    main()
