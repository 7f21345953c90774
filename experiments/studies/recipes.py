"""What was tried to make the estimators' default better, on the development tables only.

A family is one way to encode and train. For each family and table, the strengths are one
population, trained on 1,600 of the 2,000 training rows and narrowed to four on the 400 held out;
the four are then trained again on all 2,000. The validation part of the table judges, the test part
is not touched here.

    python -m experiments.studies.recipes --data DIR [--cluster local]

Outputs of all members are kept beside the cells (``*.npz``), so that ways to combine them can be
compared without training again. Neither are committed: a cell without its outputs is of no use.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from experiments.cells import experiment_arguments, run_study
from experiments.data import load_table, reported_loss, scale_target, split_rows
from experiments.studies.combine import RECIPES, Members, judge
from psilonnet.estimators import Design, Problem, column_map, make_splits
from psilonnet.nn import path_norm_penalty, plain_net
from psilonnet.scale import cell_key
from psilonnet.tables import fit_encoder, read_columns
from psilonnet.training import STRENGTHS, Narrowing, Plan, repeat_member, stack_members

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.cells import Cell
    from experiments.data import Table
    from psilonnet.training import Run

# The tables that all recipes are compared on, named before the first recipe was tried.
DEVELOPMENT = (
    "higgs", "house_sales", "jannis", "bike_sharing_demand", "cpu_act", "covertype", "superconduct",
    "heloc", "elevators", "brazilian_houses", "wine_quality", "road_safety",
)  # fmt: skip
HELD_OUT = 0.2  # of the training rows
RUNGS = ((0.05, 8), (0.3, 5), (0.5, 4))  # neighbours stay, to be averaged


@dataclass(frozen=True)
class Family:
    """One way to encode a table and to train on it."""

    scaling: str = "standard"
    knots: int = 0
    architecture: str = "mlp"
    width: int = 256
    depth: int = 3
    steps: int = 3000
    batch_size: int = 256
    learning_rate: float = 2e-3
    tables: int = len(DEVELOPMENT)  # how many it was tried on


FAMILIES = {
    "plain": Family(),
    "clip": Family(scaling="robust"),
    "tails": Family(scaling="log_tails"),
    "tails, knots 8": Family(scaling="log_tails", knots=8),
    # On the first tables only: what costs less, and what looked worse.
    "clip, knots 8": Family(scaling="robust", knots=8, tables=6),
    "tails, narrow": Family(scaling="log_tails", width=128, tables=6),
    "tails, knots 8, narrow": Family(scaling="log_tails", knots=8, width=128, tables=6),
    "tails, short": Family(scaling="log_tails", steps=1500, tables=2),
}


@dataclass(frozen=True)
class Encoded:
    """The training rows, and the rows that judge, as a network sees them."""

    problem: Problem
    judges_x: torch.Tensor
    judges_y: np.ndarray[Any, Any]


def encode(table: Table, family: Family) -> Encoded:
    """Encode a table with the estimators' own encoder, fitted on the training rows."""
    split = split_rows(len(table.y), seed=0)
    y = scale_target(table, split.train)
    columns = read_columns(table.x)
    train = [column.take(split.train) for column in columns]
    weight = np.ones(len(split.train))
    encoder = fit_encoder(train, weight)
    seen = column_map(encoder, train, weight, family.scaling)
    judges = encoder.encode([column.take(split.valid) for column in columns])
    problem = Problem(
        x=seen(torch.from_numpy(encoder.encode(train))),
        y=torch.tensor(y[split.train, None], dtype=torch.float32),
        weight=torch.ones(len(split.train)),
        counts=torch.ones(len(split.train)),
        loss=table.loss,
        outputs=1,
    )
    return Encoded(problem, seen(torch.from_numpy(judges)), y[split.valid])


def design_of(family: Family) -> Design:
    """Return the network and training of a family."""
    plan = Plan(
        steps=family.steps,
        batch_size=family.batch_size,
        evaluate_every=family.steps // 20,
        matmul_precision="medium",
        progress=False,
    )
    return Design(
        architecture=family.architecture,
        width=family.width,
        depth=family.depth,
        knots=family.knots,
        learning_rate=family.learning_rate,
        device="cpu",
        seed=0,
        plan=plan,
    )


def compute(cell: Cell, *, data: str, outputs: Path) -> Cell:
    """Train one family on one table."""
    table = load_table(cell["dataset"], data)
    encoded = encode(table, FAMILIES[cell["family"]])
    problem = encoded.problem
    strata = problem.y[:, 0].long() * (table.task == "classification")
    splits = make_splits(strata.numpy(), None, HELD_OUT, 0)
    if splits is None:
        raise ValueError(f"{cell['dataset']} cannot be split.")
    [(kept, held)] = splits
    begin = perf_counter()
    design = design_of(FAMILIES[cell["family"]])
    net = repeat_member(design.make_nets(problem, [0])[0], len(STRENGTHS))
    rows = problem.rows(kept), problem.rows(held)
    run = design.job(net, problem, *rows, STRENGTHS, Narrowing(RUNGS)).run()
    strengths = [STRENGTHS[k] for k in run.members]
    again = stack_members(design.make_nets(problem, range(1, 1 + len(strengths))))
    refitted = design.job(again, problem, problem.rows(), None, strengths).run()
    seconds = perf_counter() - begin
    members = Members(
        strengths=np.array(strengths),
        held=outputs_of(run, problem.x[torch.as_tensor(held)]),
        judged=outputs_of(run, encoded.judges_x),
        refits=outputs_of(refitted, encoded.judges_x),
        bounds=path_norm_penalty(refitted.net).detach().numpy(),
        y=problem.y[torch.as_tensor(held), 0].numpy(),
        judges_y=encoded.judges_y,
    )
    members.save(outputs / f"{cell_key(cell)}.npz")
    task = table.task
    losses = {"held_out": "held", "valid": "judged", "refitted": "refits"}
    found = {f"{name}_loss": members.losses(task, part) for name, part in losses.items()}
    reported = {name: [reported_loss(task, loss) for loss in all_] for name, all_ in found.items()}
    return {
        "strengths": strengths,
        **reported,
        "bound": members.bounds.tolist(),
        "seconds": seconds,
    }


def outputs_of(run: Run, x: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the output of every member that is left, of shape (members, rows)."""
    return np.asarray(plain_net(run.net)(x)[..., 0])


def main() -> None:
    """Run all cells, combine their members in many ways and write ``recipes.csv``.

    The figures are geometric means of the loss over that of the first recipe.
    """
    arguments = experiment_arguments("Recipes on the development tables.")
    outputs = (arguments.cells / "recipes").resolve()
    cells = [
        {"dataset": name, "family": family}
        for family, settings in FAMILIES.items()
        for name in DEVELOPMENT[: settings.tables]
    ]
    run_study("recipes", partial(compute, outputs=outputs), cells, arguments)
    if arguments.only:
        return
    with (arguments.results / "recipes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "recipe", "valid_loss", "bound", "networks"])
        figures: dict[str, float] = {}
        reference: dict[str, float] = {}
        for recipe, (families, _) in RECIPES.items():
            tables = DEVELOPMENT[: min(FAMILIES[family].tables for family in families)]
            lines = [judge(recipe, name, outputs, arguments.data) for name in tables]
            writer.writerows(lines)
            losses = {line[0]: line[2] for line in lines}
            reference = reference or losses  # the first recipe
            ratios = [np.log(losses[name] / reference[name]) for name in tables]
            figures[recipe] = round(float(np.exp(np.mean(ratios))), 4)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
