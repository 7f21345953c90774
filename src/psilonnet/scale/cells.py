"""A function over many cells, each an independent piece of work.

Scheduling, retries after a lost worker or node, and resources are Ray's; this file hands the cells
over, writes what comes back and shows how far it is.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from psilonnet._extras import require
from psilonnet.scale.failures import SomeFailedError, first_line
from psilonnet.scale.results import Results, cell_key

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

Cell = dict[str, Any]

# Tasks handed to Ray at a time. A million at once would fill the driver's memory; a thousand keep
# a cluster of hundreds of cores busy and tell its autoscaler how much is waiting.
WINDOW = 1000


class CellsFailedError(SomeFailedError):
    """Some cells raised an error; the results of all others are written."""

    heading = "Cells that failed: {count}. The results of all others are written."

    def _reason(self, error: Exception) -> str:
        return f"{type(error).__name__}: {first_line(error)}"  # an error of the user's function


def run_cells(
    function: Callable[[Cell], Any],
    cells: Iterable[Cell],
    folder: str | os.PathLike[str],
    *,
    cluster: str | None = None,
    cpus: float = 1.0,
    retries: int = 10,
    progress: bool | str = True,
) -> Results:
    """Compute ``function(cell)`` for every cell that has no result yet, and write each result.

    A cell is a dict that JSON can hold, and so is a result. The results are written one by one, as
    they come, by this process alone: no shared disk is needed. Run the same cells again after a
    stop, and only the missing ones are computed.

    Parameters
    ----------
    function : callable
        Takes a cell, returns its result. It should depend on nothing but the cell, so that a
        second attempt gives the same result.
    cells : iterable of dict
        The pieces of work. They are started in this order.
    folder : path
        Where the results are written, see :class:`Results`.
    cluster : str, optional
        ``None`` computes one cell after the other in this process. ``"local"`` starts Ray on this
        machine, and any other value is the address of a Ray cluster; both need the extra ``ray``.
        A Ray that this process is connected to already is used as it is.
    cpus : float, default=1
        How many cores a cell takes on the cluster.
    retries : int, default=10
        How often Ray starts a cell again whose worker or node was lost. An error that the function
        raises is not tried again.
    progress : bool or str, default=True
        Whether to show a progress bar with the time left; a word names what it counts.

    Returns
    -------
    Results
        The folder as a mapping from cell to result.

    Raises
    ------
    CellsFailedError
        At the end, if the function raised an error for some cells.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     results = run_cells(lambda cell: cell["n"] ** 2, [{"n": 3}], folder, progress=False)
    ...     results[{"n": 3}]
    9
    """
    results = Results(folder)
    wanted = {cell_key(cell): cell for cell in cells}
    missing = [cell for cell in wanted.values() if cell not in results]
    failures: list[tuple[Cell, Exception]] = []
    unit = progress if isinstance(progress, str) else "cell"
    finished = len(wanted) - len(missing)
    with tqdm(total=len(wanted), initial=finished, unit=unit, disable=not progress) as bar:
        for cell, result, error in outcomes(function, missing, cluster, cpus, retries):
            if error is None:
                results.write(cell, result)
            else:
                failures.append((cell, error))
            bar.update()
    if failures:
        raise CellsFailedError(failures)
    return results


Outcome = tuple[Any, Any, "Exception | None"]  # a cell, its result, what it raised


def outcomes(
    function: Callable[[Any], Any],
    cells: Sequence[Any],
    cluster: str | None,
    cpus: float = 1.0,
    retries: int = 10,
) -> Iterator[Outcome]:
    """Yield what becomes of each cell, in the order in which they are done; write nothing."""
    if cluster is None:
        return _in_this_process(function, cells)
    return _on_ray(function, cells, cluster, {"num_cpus": cpus, "max_retries": retries})


def _in_this_process(function: Callable[[Any], Any], cells: Sequence[Any]) -> Iterator[Outcome]:
    for cell in cells:
        try:
            outcome: Outcome = (cell, function(cell), None)
        except Exception as error:
            outcome = (cell, None, error)
        yield outcome


def _on_ray(
    function: Callable[[Any], Any], cells: Sequence[Any], cluster: str, options: dict[str, Any]
) -> Iterator[Outcome]:
    if not cells:
        return
    ray = require("ray", "ray")

    def compute(cell: Any) -> Any:  # Ray takes a function, not any callable
        return function(cell)

    with _connected(ray, cluster):
        task = ray.remote(**options)(compute)
        waiting = iter(cells)
        running: dict[Any, Any] = {}
        while True:
            running.update({task.remote(c): c for c in islice(waiting, WINDOW - len(running))})
            if not running:
                return
            for done in ray.wait(list(running), num_returns=1)[0]:
                cell = running.pop(done)
                try:
                    outcome: Outcome = (cell, ray.get(done), None)
                except ray.exceptions.RayError as error:
                    outcome = (cell, None, getattr(error, "cause", None) or error)
                yield outcome


@contextmanager
def _connected(ray: Any, cluster: str) -> Iterator[None]:
    """Connect to a cluster, and leave it again if it was this function that connected."""
    if ray.is_initialized():
        yield
        return
    # "local" itself is passed on: without an address Ray joins any cluster it finds running here,
    # and that may be somebody else's.
    try:
        ray.init(address=cluster, include_dashboard=False if cluster == "local" else None)
    except ValueError as error:
        raise ValueError(
            "The 'cluster' must be None, 'local', or the address of a Ray cluster, such as "
            f"'10.0.0.1:6379'. Got {cluster!r} instead."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()
