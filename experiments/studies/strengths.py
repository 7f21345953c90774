"""Which strengths an average needs: few that are far apart, or the paper's thirteen, narrowed.

Our estimators fitted to the training rows alone, on the first six development tables; the
validation part, which they have not seen, judges, and the test part is not touched.

    python -m experiments.studies.strengths --data DIR
"""

from __future__ import annotations

import json
from math import exp, log
from statistics import mean
from time import process_time
from typing import TYPE_CHECKING, Any

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import load_table, reported_loss
from experiments.frames import fit_ours, make_frames, mean_loss
from experiments.studies.recipes import DEVELOPMENT
from psilonnet.training import STRENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from experiments.cells import Cell
    from experiments.data import Table
    from experiments.frames import Part

GRIDS: dict[str, Any] = {
    "thirteen": STRENGTHS,  # 5e-5 to 0.5
    "three": STRENGTHS[3:10:3],  # 5e-4, 5e-3, 5e-2; an average drops none of three
}
TABLES = DEVELOPMENT[:6]
FIGURES = ("valid_loss", "bound", "networks", "seconds")


def cells() -> Iterator[Cell]:
    """Yield all cells, table by table."""
    for name in TABLES:
        for grid in GRIDS:
            yield {"dataset": name, "grid": grid}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit our estimator with one grid to one table."""
    table = load_table(cell["dataset"], data)
    return judged(table, make_frames(table, 0), reg_strength=GRIDS[cell["grid"]])


def judged(table: Table, parts: dict[str, Part], **settings: Any) -> Cell:
    """Return what the validation part says of our estimator with some settings."""
    begin = process_time()
    model = fit_ours(table.task, parts, "user", **settings)
    seconds = process_time() - begin
    return {
        "valid_loss": reported_loss(table.task, mean_loss(table.task, model, parts["valid"])),
        "bound": model.lipschitz_bound_,
        "networks": len(model.members_["weight"]),
        "seconds": seconds,
    }


def ratios(lines: Sequence[Cell], column: str) -> dict[str, float]:
    """Return geometric means of the figures with one setting over those with that before it."""
    settings = dict.fromkeys(line[column] for line in lines)
    usual, other = ([line for line in lines if line[column] == value] for value in settings)
    return {
        figure: exp(mean(log(b[figure] / a[figure]) for a, b in zip(usual, other, strict=True)))
        for figure in FIGURES
    }


def main() -> None:
    """Run all cells and write ``strengths.csv``."""
    arguments = experiment_arguments("Strengths that go well together.")
    results = run_study("strengths", compute, cells(), arguments)
    if arguments.only:
        return
    lines = [cell | results[cell] for cell in cells()]
    write_csv(lines, arguments.results / "strengths.csv")
    print(json.dumps({name: round(value, 4) for name, value in ratios(lines, "grid").items()}))


if __name__ == "__main__":
    main()
