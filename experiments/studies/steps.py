"""How many steps the estimators need when there are more than 2,000 rows.

Our estimators fitted to 10,000 rows of three development tables; the validation part, which they
have not seen, judges, and the test part is not touched.

    python -m experiments.studies.steps --data DIR
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.data import load_table
from experiments.frames import make_frames
from experiments.studies.strengths import judged, ratios

if TYPE_CHECKING:
    from collections.abc import Iterator

    from experiments.cells import Cell

TABLES = ("covertype", "higgs", "house_sales")
ROWS = 10_000
# As many as for 2,000 rows, or more of them with the root of the number of rows.
STEPS = (3000, 6700)


def cells() -> Iterator[Cell]:
    """Yield all cells, table by table."""
    for name in TABLES:
        for steps in STEPS:
            yield {"dataset": name, "rows": ROWS, "steps": steps}


def compute(cell: Cell, *, data: str) -> Cell:
    """Fit our estimator with so many steps to one table."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, 0, n_train=cell["rows"])
    return judged(table, parts, max_steps=cell["steps"])


def main() -> None:
    """Run all cells and write ``steps.csv``."""
    arguments = experiment_arguments("Steps for larger tables.")
    results = run_study("steps", compute, cells(), arguments)
    if arguments.only:
        return
    lines = [cell | results[cell] for cell in cells()]
    write_csv(lines, arguments.results / "steps.csv")
    print(json.dumps({name: round(value, 4) for name, value in ratios(lines, "steps").items()}))


if __name__ == "__main__":
    main()
