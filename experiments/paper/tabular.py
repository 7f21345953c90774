"""Tables 1 and 2 (Section 4.1): four models on 29 of the paper's 30 tables.

python -m experiments.paper.tabular --data DIR [--cluster local]
"""

from __future__ import annotations

import csv
import json
from functools import partial
from typing import TYPE_CHECKING

from experiments.cells import experiment_arguments, missing_note, run_study
from experiments.data import ALL, EIGHT, LOSS_COLUMNS, load_table, make_parts, reported_loss
from experiments.grid import best, fresh_grid, warm_grid
from experiments.paper.baselines import forest_grid, linear_grid
from experiments.paper.search import loss_of_mean, replay, searched_grid
from experiments.paper.tabular_report import write_report
from psilonnet.training import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from experiments.cells import Cell
    from psilonnet.scale import Results

WARM = ("higgs", "house_sales", "jannis", "cpu_act")
CODES = ("road_safety", "brazilian_houses", "albert")
WHOLE = {"P-Net": EIGHT, "S-Net": EIGHT[:2]}  # all strengths; elsewhere they are searched
PLAN = Plan(matmul_precision="medium", progress=False)  # precision.csv says why
SEARCH_NOTE = (
    "\nThe nets' thirteen strengths were all trained on {whole_grids} grids (`tried` in "
    "`tabular.csv`). On the others three were trained first, then neighbours of the best until "
    "both were worse; and if the best was worse than predicting the mean, the search went on from "
    "the strongest. Replayed on the whole grids this search ends at their best strength on "
    "{search_finds_best}, on the others its validation loss is at most {search_worst_excess:.1%} "
    "higher; it trains {search_mean_tried:.1f} strengths on average.\n"
)
MODELS: dict[tuple[str, str], Callable[..., Cell]] = {
    ("LR", "fresh"): linear_grid,
    ("RF", "fresh"): forest_grid,
    ("P-Net", "fresh"): partial(fresh_grid, "P-Net", plan=PLAN, curves=False),
    ("S-Net", "fresh"): partial(fresh_grid, "S-Net", plan=PLAN, curves=False),
    ("P-Net", "warm"): partial(warm_grid, "P-Net", plan=PLAN),
}


def cells() -> Iterator[Cell]:
    """Yield all cells, cheap ones first."""
    plan = [("LR", "fresh", ALL), ("RF", "fresh", ALL)]
    plan += [(net, "fresh", (name,)) for name in ALL for net in ("P-Net", "S-Net")]
    plan += [("P-Net", "warm", WARM), ("P-Net", "codes", CODES), ("S-Net", "codes", CODES)]
    for model, reading, names in plan:
        for name in names:
            cell = {"dataset": name, "model": model, "reading": reading, "seed": 0}
            yield cell if is_whole(cell) else cell | {"grid": "searched"}


def is_whole(cell: Cell) -> bool:
    """Return whether a cell trains its whole grid; else its strengths are searched."""
    if cell["reading"] == "fresh":
        return cell["dataset"] in WHOLE.get(cell["model"], ALL)
    return bool(cell["reading"] == "warm")


def compute(cell: Cell, *, data: str) -> Cell:
    """Train one model on one table over its whole grid."""
    table = load_table(cell["dataset"], data)
    # Forests get codes, as trees handle them best; linear models and nets get 0/1 columns.
    codes = cell["model"] == "RF" or cell["reading"] == "codes"
    parts = make_parts(table, seed=cell["seed"], codes=codes)
    if "grid" in cell:
        return searched_grid(cell["model"], table, parts, plan=PLAN)
    return MODELS[cell["model"], cell["reading"]](table=table, parts=parts)


def row(cell: Cell, result: Cell, task: str) -> list[object]:
    """Return the line of the table: the grid's member with the least validation loss."""
    k = best(result)
    losses = [f"{reported_loss(task, result[part][k]):.5f}" for part in ("valid_loss", "test_loss")]
    extras = [f"{result[name][k]:.4g}" if result.get(name) else "" for name in LOSS_COLUMNS[9:11]]
    head = [cell["dataset"], task, cell["model"], cell["reading"], "paper", cell["seed"]]
    tail = [f"{result['seconds']:.0f}", len(result["strengths"])]
    return [*head, result["strengths"][k], *losses, *extras, *tail]


def write_table(results: Results, data: str, path: Path) -> list[dict[str, str]]:
    """Write ``tabular.csv`` from all cells, and return its lines."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*LOSS_COLUMNS, "tried"])
        for cell in (cell for cell in cells() if cell in results):
            task = load_table(cell["dataset"], data).task
            writer.writerow(row(cell, results[cell], task))
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def check_search(results: Results, data: str) -> dict[str, float]:
    """Replay the search on the nets' whole grids, if any: how far it misses their best."""
    excess, tried = [], []
    for cell in (cell for cell in cells() if cell["model"] in WHOLE and is_whole(cell)):
        if cell in results and cell["reading"] == "fresh":
            losses = results[cell]["valid_loss"]
            table = load_table(cell["dataset"], data)
            known = replay(losses, loss_of_mean(table, make_parts(table, seed=cell["seed"])))
            found, least = (reported_loss(table.task, min(v)) for v in (known.values(), losses))
            excess.append(found / least - 1)
            tried.append(len(known))
    if not excess:
        return {}
    return {
        "whole_grids": len(excess),
        "search_finds_best": excess.count(0),
        "search_worst_excess": round(max(excess), 5),
        "search_mean_tried": sum(tried) / len(tried),
    }


def main() -> None:
    """Run the sweep and write the tables."""
    arguments = experiment_arguments("Tables 1 and 2 of the paper.", so_far=True)
    results = run_study("tabular", compute, cells(), arguments)
    if arguments.only:
        return
    arguments.results.mkdir(parents=True, exist_ok=True)
    lines = write_table(results, arguments.data, arguments.results / "tabular.csv")
    check = check_search(results, arguments.data)
    note = missing_note(cells(), results) + (SEARCH_NOTE.format(**check) if check else "")
    print(json.dumps(write_report(lines, arguments.results, note) | check))


if __name__ == "__main__":
    main()
