"""The deep ablation (Section 4.3, Table 3): seven residual networks on Fashion-MNIST.

Every strength of the paper's grid is scouted with 2,000 steps under the full schedule's shape; the
two next stronger than the best of each model get the paper's 20,000 steps. P is also pruned, and
made deeper, and the best P is trained once more to ask what linear bounds prove of it.

    python -m experiments.paper.fashion_mnist --data DIR [--cluster local] [--so-far]

DIR holds the four original files, itself or in DIR/fashion_mnist; "download" fetches them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.cells import experiment_arguments, run_study
from experiments.paper.fashion_nets import MODELS, PLAN, compute
from experiments.paper.fashion_report import write_certificates, write_report
from experiments.paper.fashion_study import FINALISTS, Study

if TYPE_CHECKING:
    from argparse import Namespace

    from experiments.cells import Cell

NAME = "fashion_mnist"
# The paper's grids (App. C.2).
STRENGTHS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(MODELS, (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3)),
    "S": (1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1),
}


@dataclass(frozen=True)
class Sizes:
    """How large and how long; the defaults are the paper's where it says."""

    width: int = 500
    depth: int = 10
    steps: int = PLAN.steps
    scout_steps: int = 2_000
    depth_steps: int = 1_000
    depths: tuple[int, ...] = (5, 10, 20, 50)
    prune_steps: int = 4_000
    row_norms: tuple[float | None, ...] = (None, 8.0)
    timed_steps: int = 17

    def cell(self, stage: str, model: str, strength: float, **changes: Any) -> Cell:
        """Return the cell of one net."""
        own = {"width": self.width, "depth": self.depth, "steps": self.steps}
        return {"stage": stage, "model": model, "reg_strength": strength, **own, **changes}


PAPER_SIZES = Sizes()


def run_all(arguments: Namespace, sizes: Sizes = PAPER_SIZES) -> Study:
    """Scout, train the finalists, then prune and deepen P, and time all models."""
    work = partial(compute, checkpoints=(arguments.cells / NAME).resolve())
    study = Study()

    def run(cells: list[Cell]) -> None:
        results = run_study(NAME, work, cells, arguments)
        study.pairs += [(cell, results[cell]) for cell in cells if cell in results]

    run(scout_cells(sizes))
    run(full_cells(study, sizes) + depth_cells(study, sizes))
    run(pruned_cells(study, sizes) + linear_cells(study, sizes))
    # Last and alone, so that no other cell runs beside it; the strength changes no time.
    run([sizes.cell("times", "all", 1e-4, steps=sizes.timed_steps)])
    return study


def scout_cells(sizes: Sizes) -> list[Cell]:
    """Return one short training for each model and strength."""
    return [
        sizes.cell("scout", model, strength, steps=sizes.scout_steps)
        for model in MODELS
        for strength in STRENGTHS[model]
    ]


def full_cells(study: Study, sizes: Sizes) -> list[Cell]:
    """Return the full trainings of all models whose strengths are all scouted."""
    complete = [m for m in MODELS if len(study.stage("scout", m)) == len(STRENGTHS[m])]
    chosen = {model: finalists(study, model) for model in complete if study.ranked("scout", model)}
    return [
        sizes.cell("full", model, strengths[rank])
        for rank in range(FINALISTS)
        for model, strengths in chosen.items()
    ]


def finalists(study: Study, model: str) -> tuple[float, ...]:
    """Return the strengths next above that of the best scout.

    A short training has hardly begun to overfit, so the best strength of a long one is stronger.
    """
    grid = STRENGTHS[model]
    best = grid.index(study.ranked("scout", model)[0][0]["reg_strength"])
    first = min(best + 1, len(grid) - FINALISTS)
    return grid[first : first + FINALISTS]


def depth_cells(study: Study, sizes: Sizes) -> list[Cell]:
    """Return short trainings of P at several depths, at one strength for all of them."""
    if len(study.stage("scout", "P")) < len(STRENGTHS["P"]):
        return []
    strength = study.ranked("scout", "P")[0][0]["reg_strength"]
    changes = [{"depth": depth, "steps": sizes.depth_steps} for depth in sizes.depths]
    return [sizes.cell("depth", "P", strength, **own) for own in changes]


def pruned_cells(study: Study, sizes: Sizes) -> list[Cell]:
    """Return the training of the best P again, now with a pruning stage at its end."""
    changes = [{"prune_steps": sizes.prune_steps, "row_norm": norm} for norm in sizes.row_norms]
    return [
        sizes.cell("pruned", "P", strength, **own)
        for strength in best_strength(study)
        for own in changes
    ]


def linear_cells(study: Study, sizes: Sizes) -> list[Cell]:
    """Return the training of the best P again, whose images linear bounds are asked about."""
    return [sizes.cell("linear", "P", strength) for strength in best_strength(study)]


def best_strength(study: Study) -> list[float]:
    """Return the strength of the best P, or none as long as not all its finalists are trained."""
    trained = study.ranked("full", "P") if len(study.stage("full", "P")) >= FINALISTS else []
    return [cell["reg_strength"] for cell, _ in trained[:1]]


def main() -> None:
    """Run the study."""
    arguments = experiment_arguments(
        "The deep ablation of the paper on Fashion-MNIST.",
        "folder with the four original files, or 'download'",
        so_far=True,
    )
    study = run_all(arguments)
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_certificates(study, arguments.results)  # whole as soon as P is, also with --only P
    if arguments.only:
        return
    print(json.dumps(write_report(study, arguments.results)))


if __name__ == "__main__":
    main()
