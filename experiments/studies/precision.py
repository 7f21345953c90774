"""Whether bfloat16 products ("medium" precision) change P-Net beyond the noise of seeds.

Five seeds, both precisions, at the strength that ``experiments.studies.halving`` chose, or its
neighbour; the paper's settings otherwise.

    python -m experiments.studies.precision --data DIR
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from experiments.cells import experiment_arguments, run_study
from experiments.data import load_table, make_parts, reported_loss
from experiments.grid import describe, make_run, start_net
from psilonnet.training import Plan, stack_members

if TYPE_CHECKING:
    from experiments.cells import Cell

STRENGTHS = {"higgs": 5e-3, "house_sales": 2.5e-3, "cpu_act": 1e-4}
SEEDS = 5
PLAN = Plan(progress=False)


def compute(cell: Cell, *, data: str) -> Cell:
    """Train five seeds as one population, in one precision."""
    table = load_table(cell["dataset"], data)
    parts = make_parts(table, seed=0)
    net = stack_members([start_net("P-Net", parts, seed=seed) for seed in range(SEEDS)])
    strengths = [STRENGTHS[cell["dataset"]]] * SEEDS
    precision: Any = cell["precision"]
    plan = replace(PLAN, matmul_precision=precision)
    run = make_run(net, "P-Net", table, parts, strengths, plan)
    run.train()
    found = describe(run, parts, strengths, 0.0)
    return {
        part: [reported_loss(table.task, loss) for loss in found[part]]
        for part in ("valid_loss", "test_loss")
    }


def main() -> None:
    """Run all cells and write ``precision.csv``."""
    arguments = experiment_arguments("Precision of the matrix products.")
    cells = [{"dataset": n, "precision": p} for n in STRENGTHS for p in ("medium", "highest")]
    results = run_study("precision", compute, cells, arguments)
    if arguments.only:
        return
    figures = {}
    with (arguments.results / "precision.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "precision", "seed", "valid_loss", "test_loss"])
        for cell in cells:
            pairs = zip(*(results[cell][p] for p in ("valid_loss", "test_loss")), strict=True)
            for seed, losses in enumerate(pairs):
                writer.writerow([cell["dataset"], cell["precision"], seed, *losses])
    for name in STRENGTHS:
        medium, highest = (
            results[{"dataset": name, "precision": p}]["valid_loss"] for p in ("medium", "highest")
        )
        shift = mean(a - b for a, b in zip(medium, highest, strict=True))
        figures[f"{name}_shift_in_seed_deviations"] = shift / stdev(highest)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
