"""What lies between proof and attack: proofs that are too weak, and attacks that are too weak.

On four tables, of the rows that are right, that survive the attack of
``experiments.comparison.certificates`` and that linear bounds leave open: which are proven once the
moves are divided into cases, which does a longer attack refute, and which stay open.

    python -m experiments.comparison.verdicts --data DIR

The last line is one JSON object: these counts for each model, over the tables.
"""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import torch

from experiments.cells import experiment_arguments, run_study, write_csv
from experiments.comparison.certificates import (
    DEFAULT,
    ROWS,
    TOLERANCE,
    encoded_rows,
    margins_of,
    proven,
    train,
)
from experiments.data import load_table, make_parts
from experiments.frames import fit_ours, make_frames
from psilonnet.certify import Box, Certifier, Effort, attack
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from torch import Tensor

    from experiments.cells import Cell
    from psilonnet.training import Rows

TABLES = ("heloc", "higgs", "house_sales", "bike_sharing_demand")
SIZES = {"P-Net": 0.25, DEFAULT: 0.1}  # moves of which linear bounds leave enough rows open
MOST = 50  # rows of a table
BUDGET = 60  # cases of a row
LONGER = Effort(climbs=10, steps=60, seed=1)
COUNTS = ("left", "proven", "refuted", "open")


def divided(net: AveragedNet, task: str, rows: Rows, size: float) -> Cell:
    """Return how many rows were left open, and what cases and a longer attack decide."""
    x, y = rows.x[:ROWS].double(), rows.y[:ROWS, 0].double()
    margins, worst = margins_of(task, net(x)[:, 0], y)
    box = Box.of(torch.full_like(x, size))
    harm = attack(net, x, box, worst.reshape(-1, 1, 1)).moves[:, 0]
    asked = (harm < margins).nonzero().squeeze(1)
    known = proven(net, task, (x[asked], y[asked]), size, "linear")
    left = asked[~known][:MOST]
    refuted = _refuted(net, x[left], size, (margins[left], worst[left]))
    begin = perf_counter()
    by_cases = _by_cases(net, task, (x[left], y[left]), size, ~refuted)
    return {
        "rows": len(x),
        "survive": len(asked),
        "left": len(left),
        "proven": int(by_cases.sum()),
        "refuted": int(refuted.sum()),
        "open": int((~refuted & ~by_cases).sum()),
        "seconds_of_cases": perf_counter() - begin,
    }


def _refuted(net: AveragedNet, x: Tensor, size: float, goal: tuple[Tensor, Tensor]) -> Tensor:
    margins, worst = goal
    box = Box.of(torch.full_like(x, size))
    directions, enough = worst.reshape(-1, 1, 1), margins.unsqueeze(1)
    moves = attack(net, x, box, directions, enough=enough, effort=LONGER).moves[:, 0]
    return moves >= margins


def _by_cases(
    net: AveragedNet, task: str, rows: tuple[Tensor, Tensor], size: float, asked: Tensor
) -> Tensor:
    x, y = rows
    if not len(x):
        return asked
    certifier = Certifier(net, progress=False)
    if task == "classification":
        held = certifier.is_robust_by_cases(x, size, asked.numpy(), budget=BUDGET)
    else:
        off = (net(x)[:, 0] - y).numpy()
        enough = np.stack([TOLERANCE + off, TOLERANCE - off], axis=1)  # down, and up
        held = certifier.moves_less_by_cases(x, size, asked.numpy(), enough, budget=BUDGET)
    return torch.from_numpy(held)


def compute(cell: Cell, *, data: str) -> Cell:
    """Train the model of a cell and look at what its proofs leave open."""
    table, size = load_table(cell["dataset"], data), SIZES[cell["model"]]
    if cell["model"] == DEFAULT:
        frames = make_frames(table, seed=0)
        model = fit_ours(table.task, frames, "user")
        return divided(model.net_, table.task, encoded_rows(model, frames["test"]), size)
    parts = make_parts(table, seed=0)
    net, _ = train(cell["model"], table, parts)
    return divided(AveragedNet.of(net), table.task, parts.test, size)


def all_cells() -> list[Cell]:
    """Return a cell for each model and table."""
    return [{"dataset": name, "model": model} for model in SIZES for name in TABLES]


def main() -> None:
    """Run all cells and write ``verdicts.csv``."""
    arguments = experiment_arguments("What lies between proof and attack.", so_far=True)
    results = run_study("verdicts", compute, all_cells(), arguments)
    lines = [
        {**cell, "size": SIZES[cell["model"]], **results[cell]}
        for cell in all_cells()
        if cell in results
    ]
    if arguments.only or not lines:
        return
    write_csv(lines, arguments.results / "verdicts.csv")
    own = {model: [line for line in lines if line["model"] == model] for model in SIZES}
    told = {m: {k: sum(x[k] for x in found) for k in COUNTS} for m, found in own.items()}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
