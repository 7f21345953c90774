"""Pieces of work that are computed once: each is saved when done and skipped when present."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

Cell = dict[str, Any]


def cached(path: Path, compute: Callable[[], Cell]) -> Cell:
    """Return the saved result of a cell, or compute it and save it by an atomic rename."""
    if path.exists():
        saved: Cell = json.loads(path.read_text())
        return saved
    result: Cell = _rounded(compute())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(result))
    partial.replace(path)
    return result


def _rounded(value: Any) -> Any:
    """Keep six digits of every number, so that the files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def experiment_arguments(description: str) -> argparse.Namespace:
    """Parse the arguments that all experiments share, and use one thread per process."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder with datasets.json")
    parser.add_argument("--cells", type=Path, default=Path("experiments/results/cells"))
    parser.add_argument("--results", type=Path, default=Path("experiments/results"))
    parser.add_argument("--only", nargs="*", help="compute these cells only; write no table")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    return arguments
