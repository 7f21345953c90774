"""Many independent pieces of work: on a cluster through Ray, or in this process."""

from psilonnet.scale.cells import CellsFailedError, run_cells
from psilonnet.scale.results import Results, cell_key
from psilonnet.scale.scoring import Scored, ScoringFailedError, score

__all__ = [
    "CellsFailedError",
    "Results",
    "Scored",
    "ScoringFailedError",
    "cell_key",
    "run_cells",
    "score",
]
