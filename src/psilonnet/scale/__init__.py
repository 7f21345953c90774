"""Many independent pieces of work: on a cluster through Ray, or in this process."""

from psilonnet.scale.cells import CellsFailedError, run_cells
from psilonnet.scale.many import fit_many
from psilonnet.scale.predicting import predict_many
from psilonnet.scale.results import Results, cell_key

__all__ = ["CellsFailedError", "Results", "cell_key", "fit_many", "predict_many", "run_cells"]
