"""Many independent pieces of work: on a cluster through Ray, or in this process."""

from psilonnet.scale.cells import CellsFailedError, run_cells
from psilonnet.scale.many import fit_many
from psilonnet.scale.predicting import predict_many
from psilonnet.scale.results import Results, cell_key
from psilonnet.scale.scoring import Scored, ScoringFailedError, score

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
