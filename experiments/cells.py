"""What all experiments share: their arguments, cells that are computed once, and tables."""

from __future__ import annotations

import argparse
import csv
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from experiments.gather import CELLS, StudyResults
from psilonnet.scale import run_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from psilonnet.scale import Results

Cell = dict[str, Any]
TABLES = "folder with datasets.json, or 'openml' for the network"


def experiment_arguments(
    description: str, data: str = TABLES, *, so_far: bool = False, **flags: str
) -> argparse.Namespace:
    """Parse the arguments that all experiments share; ``data`` says what ``--data`` may be.

    Studies of many hours can also report ``--so-far``; ``flags`` are flags of a study's own, with
    what they do.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", required=True, help=data)
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--results", type=Path, default=Path("experiments/results"))
    parser.add_argument("--only", nargs="*", help="compute cells with these values; no tables")
    parser.add_argument("--cluster", help="'local' or the address of a Ray cluster; else in turn")
    if so_far:
        parser.add_argument(
            "--so-far", action="store_true", help="compute nothing; tables of the finished cells"
        )
    for name, words in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=words)
    return parser.parse_args()


def run_study(
    name: str,
    compute: Callable[..., Cell],
    cells: Iterable[Cell],
    arguments: argparse.Namespace,
) -> StudyResults:
    """Compute the missing cells of a study, those asked for, with ``compute(cell, data=...)``.

    If all were asked for, they are gathered at the end.
    """
    results = StudyResults(arguments.cells / name)
    if getattr(arguments, "so_far", False):
        return results
    only = arguments.only or []
    wanted = [c for c in cells if not only or any(str(v) in only for v in c.values())]
    missing = [c for c in wanted if c not in results]
    work = partial(_compute_alone, compute=compute, data=arguments.data)
    run_cells(work, missing, results.folder, cluster=arguments.cluster)
    if not only:
        results.gather()
    return results


def _compute_alone(cell: Cell, *, compute: Callable[..., Cell], data: str) -> Any:
    torch.set_num_threads(1)
    return rounded(compute(cell, data=data))


def missing_note(cells: Iterable[Cell], results: Results) -> str:
    """Return a sentence for the head of a report if cells are missing, else nothing."""
    there = [cell in results for cell in cells]
    if all(there):
        return ""
    return f"\n**Not complete:** {there.count(False)} of {len(there)} cells are still missing.\n"


def write_csv(lines: Sequence[Cell], path: Path) -> None:
    """Write lines of equal columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)


def rounded(value: Any) -> Any:
    """Keep six digits of every number, so that the files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value
