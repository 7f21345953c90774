"""A superset of designs, each trained once per table and seed; recipes are judged by replay.

Every design is fitted alone to 2,000 rows of each development table, along its own warm path, and
the outputs of all its snapshots are kept: for held-out rows those of networks that were not
trained on them, for the validation part those of the average. Sets of designs, early drops, ways
to average and weights of the bound then need no training: see ``replay_judged``.

    python -m experiments.studies.replay --data DIR [--only higgs 0]

The outputs stay beside the cells and are not committed (2 MB for a design). The last line is one
JSON object: how many cells are there, and the seconds of a core that they took.
"""

from __future__ import annotations

import json
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from experiments.cells import experiment_arguments, run_study
from experiments.data import DEVELOPMENT, load_table
from experiments.frames import fit_ours, make_frames
from psilonnet import Design

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.cells import Cell

TABLES = (*DEVELOPMENT, "miami_housing_2016")
SEEDS = (0, 1, 2)
DESIGNS = {
    design.in_words(): design
    for design in (
        Design(),
        Design(pieces=8),
        Design(directions="l2"),
        Design(directions="l2", pieces=8),
        Design("clipped"),
        Design("clipped", pieces=8),
        Design("identity"),
        Design(pieces=16),
        Design(directions="l2", pieces=16),
        Design("clipped", directions="l2", pieces=16),
    )
}
NAME = "replay"
SETTINGS: dict[str, Any] = {}  # of the estimators, beside the design: none


def all_cells() -> list[Cell]:
    """Return a cell for each design, table and seed."""
    return [
        {"dataset": name, "seed": seed, "design": design}
        for seed in SEEDS
        for name in TABLES
        for design in DESIGNS
    ]


def outputs_path(folder: Path, cell: Cell) -> Path:
    """Return where the outputs of a cell are."""
    words = "_".join(str(value) for value in cell.values())
    return folder / f"{words.replace(', ', '-').replace(' ', '-')}.npz"


@torch.no_grad()
def compute(cell: Cell, *, data: str, folder: Path) -> Cell:
    """Fit one design; keep its outputs, and return what else is known of its snapshots."""
    table = load_table(cell["dataset"], data)
    parts = make_frames(table, cell["seed"])
    begin = process_time()
    model = fit_ours(table.task, parts, "user", designs=[DESIGNS[cell["design"]]], **SETTINGS)
    seconds = process_time() - begin
    record, valid = model._record, parts["valid"]
    x = torch.from_numpy(model.encoder_.encode(model._read(valid.x, reset=False)))
    outputs_path(folder, cell).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        outputs_path(folder, cell),
        held_out=np.stack([c.outputs for c in record.candidates]).astype(np.float32),
        valid=np.stack([c.make_net()(x).numpy() for c in record.candidates]).astype(np.float32),
        held_out_y=record.problem.y.numpy()[record.held_out.rows],
        held_out_weight=record.held_out.weight.numpy(),
        valid_y=np.asarray(model.target_.encode(model._check_target(valid.y)), np.float32),
    )
    return {
        "task": table.task,
        "seconds": seconds,
        "unit": float(model.target_.scale[0]) if table.task == "regression" else 1.0,
        "bounds": [c.bound for c in record.candidates],
        "strengths": [c.strength for c in record.candidates],
        "steps": [c.step for c in record.candidates],
        "history": record.histories[0],
    }


def main() -> None:
    """Run all cells that are missing."""
    arguments = experiment_arguments("A superset of designs, trained once.", so_far=True)
    cells = all_cells()
    folder = arguments.cells / f"{NAME}_outputs"
    results = run_study(NAME, partial(compute, folder=folder), cells, arguments)
    seconds = [results[cell]["seconds"] for cell in cells if cell in results]
    print(json.dumps({"cells": len(seconds), "of": len(cells), "seconds": round(sum(seconds))}))


if __name__ == "__main__":
    main()
