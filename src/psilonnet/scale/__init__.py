"""Many independent pieces of work: on a cluster through Ray, or in this process.

The names below are loaded on first use, so that predicting with an exported model needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psilonnet.scale.cells import CellsFailedError, outcomes, run_cells
    from psilonnet.scale.files import FilesFailedError, PredictedFiles, predict_files
    from psilonnet.scale.many import GROUPS_PER_TASK, fit_many, predict_many
    from psilonnet.scale.results import Results, cell_key

_HOMES = {
    "CellsFailedError": "cells",
    "FilesFailedError": "files",
    "GROUPS_PER_TASK": "many",
    "PredictedFiles": "files",
    "Results": "results",
    "cell_key": "results",
    "fit_many": "many",
    "outcomes": "cells",
    "predict_files": "files",
    "predict_many": "many",
    "run_cells": "cells",
}

__all__ = [
    "GROUPS_PER_TASK",
    "CellsFailedError",
    "FilesFailedError",
    "PredictedFiles",
    "Results",
    "cell_key",
    "fit_many",
    "outcomes",
    "predict_files",
    "predict_many",
    "run_cells",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"psilonnet.scale.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'psilonnet.scale' has no attribute {name!r}")
