"""Dropping weak strengths early: what it saves and what it loses, on the eight tables.

The full grids are trained once. Members do not influence each other, so every rule can be
replayed on their validation curves. The rungs were chosen on higgs, house_sales and jannis, before
the other five were run.

    python -m experiments.studies.halving --data DIR
"""

from __future__ import annotations

import csv
import json
from functools import partial
from typing import TYPE_CHECKING

from experiments.cells import experiment_arguments, run_study
from experiments.data import EIGHT, load_table, make_parts, reported_loss
from experiments.grid import best, fresh_grid
from psilonnet.training import NARROWING, STRENGTHS, Plan, narrow, narrowing_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from experiments.cells import Cell

PLAN = Plan(steps=3000, evaluate_every=50, progress=False)
WIDTH = 256


def full_grid(cell: Cell, *, data: str) -> Cell:
    """Return the full grid of a table: 13 strengths, 256 wide, 3,000 steps."""
    table = load_table(cell["dataset"], data)
    grid = fresh_grid("P-Net", table, make_parts(table, seed=0), plan=PLAN, width=WIDTH)
    return {**grid, "task": table.task}


def replay(cell: Cell, rungs: Sequence[tuple[float, int]]) -> int:
    """Return the member that a rule ends with, replayed on the curves of a full grid."""
    alive = list(range(len(STRENGTHS)))
    for fraction, kept in rungs:
        line = next(
            curve
            for step, curve in zip(cell["steps"], cell["valid_curves"], strict=True)
            if step >= fraction * PLAN.steps
        )
        positions = narrow([STRENGTHS[k] for k in alive], [line[k] for k in alive], kept)
        alive = [alive[k] for k in positions]
    return min(alive, key=cell["valid_loss"].__getitem__)


def regret(cell: Cell, chosen: int) -> float:
    """Return how much worse the choice is than the full grid's, in the reported loss."""
    metric = partial(reported_loss, cell["task"])
    return metric(cell["valid_loss"][chosen]) / metric(cell["valid_loss"][best(cell)]) - 1


def main() -> None:
    """Train the full grids, replay the rule and write the table."""
    arguments = experiment_arguments("Dropping strengths early.")
    results = run_study("halving", full_grid, [{"dataset": name} for name in EIGHT], arguments)
    if arguments.only:
        return
    cells = {name: results[{"dataset": name}] for name in EIGHT}
    cost = narrowing_cost(len(STRENGTHS))
    arguments.results.mkdir(parents=True, exist_ok=True)
    regrets = []
    with (arguments.results / "halving.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        header = ["dataset", "full_choice", "full_valid_loss", "full_test_loss"]
        writer.writerow([*header, "choice", "valid_loss", "test_loss", "regret", "cost_in_fits"])
        for name, cell in cells.items():
            line: list[object] = [name]
            for k in (best(cell), replay(cell, NARROWING)):
                losses = (cell["valid_loss"][k], cell["test_loss"][k])
                line += [STRENGTHS[k], *(f"{reported_loss(cell['task'], v):.5f}" for v in losses)]
            regrets.append(regret(cell, replay(cell, NARROWING)))
            writer.writerow([*line, f"{regrets[-1]:.5f}", f"{cost:.3f}"])
            print(*line, f"{100 * regrets[-1]:.2f} %")
    figures = {
        "cost_in_fits": cost,
        "regret_mean": sum(regrets) / len(regrets),
        "regret_worst": max(regrets),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
