"""Many independent pieces of work: on a cluster through Ray, or in this process.

The names below are loaded on first use, so that scoring with an exported model needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psilonnet.scale.cells import CellsFailedError, run_cells
    from psilonnet.scale.many import fit_many
    from psilonnet.scale.predicting import predict_many
    from psilonnet.scale.results import Results, cell_key
    from psilonnet.scale.scoring import Scored, ScoringFailedError, score

_HOMES = {
    "CellsFailedError": "cells",
    "Results": "results",
    "Scored": "scoring",
    "ScoringFailedError": "scoring",
    "cell_key": "results",
    "fit_many": "many",
    "predict_many": "predicting",
    "run_cells": "cells",
    "score": "scoring",
}

__all__ = [
    "CellsFailedError",
    "Results",
    "Scored",
    "ScoringFailedError",
    "cell_key",
    "fit_many",
    "predict_many",
    "run_cells",
    "score",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"psilonnet.scale.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'psilonnet.scale' has no attribute {name!r}")
