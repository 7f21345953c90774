"""The costs of a million models and a billion rows: a formula, checked by a simulation.

A driver hands tasks to W workers and takes their results. It can do so D times a second; a task
takes its own seconds and an overhead on its worker, and no more than a window of tasks is in
flight. So a run of n tasks takes about

    max(n / D, n (seconds + overhead) / min(W, window)) + seconds + overhead

where the last task is what remains when nothing else is left to do. The simulation plays the run
event by event, with tasks of uneven length and a driver that does one thing at a time.

    python -m benchmarks.scale_model [--measure]

--measure times what the driver can do on this machine, with cells that do nothing (extra: ray).
"""

import argparse
import heapq
import os
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmarks.figures import print_figures
from psilonnet.scale import GROUPS_PER_TASK

GROUPS, ROWS = 10**6, 10**9
WORKERS = (2, 16, 128, 1024, 4096)
WINDOW = 1000  # tasks in flight, as in psilonnet.scale.cells
SPREAD = 0.3  # of the logarithms of the lengths of tasks


@dataclass(frozen=True)
class Costs:
    """What was measured; seconds of one core, unless it says otherwise.

    Attributes
    ----------
    fit : seconds of one model inside a task (an assumption: see docs/past_one_machine.md)
    small_fit : seconds of one model of five networks of width 64 on 150 rows, as it was measured
    rows_per_second : rows that one core predicts, reading and writing included
    cells_per_second : results that the driver of run_cells takes and writes, each flushed to disk
    tasks_per_second : tasks that the drivers of fit_many and predict_files hand out; their workers
        write what comes of them, and they write nothing
    overhead : seconds of a worker around each task
    footers_per_second : footers of Parquet files that the driver reads before it starts
    model_bytes, index_bytes : of a saved model, and of its line in an index
    """

    fit: float = 2.0
    small_fit: float = 0.29
    rows_per_second: float = 205_000.0
    cells_per_second: float = 244.0
    tasks_per_second: float = 614.0
    overhead: float = 0.005
    footers_per_second: float = 2000.0
    model_bytes: float = 106_000.0
    index_bytes: float = 115.0


@dataclass(frozen=True)
class Run:
    """Equal tasks on a pool of workers.

    Attributes
    ----------
    tasks : int
    seconds : of one task on its worker, with its overhead
    rate : tasks that the driver can handle in a second
    workers : int
    """

    tasks: int
    seconds: float
    rate: float
    workers: int

    @property
    def driver(self) -> float:
        """The seconds that the driver is busy."""
        return self.tasks / self.rate

    @property
    def pool(self) -> float:
        """The seconds that the workers are busy."""
        return self.tasks * self.seconds / min(self.workers, WINDOW)

    @property
    def estimate(self) -> float:
        """The seconds of the run, by the formula."""
        return max(self.driver, self.pool) + self.seconds

    @property
    def bottleneck(self) -> str:
        """What a faster run needs more of."""
        if self.driver > self.pool:
            return "driver"
        return "window" if self.workers > WINDOW else "workers"


def fitting(costs: Costs, workers: int, per_task: int, *, small: bool = False) -> Run:
    """Return the run that fits a model per group, with so many groups per task."""
    seconds = per_task * (costs.small_fit if small else costs.fit) + costs.overhead
    return Run(-(-GROUPS // per_task), seconds, costs.tasks_per_second, workers)


def predicting(costs: Costs, workers: int, block_rows: int) -> Run:
    """Return the run that predicts all rows in blocks."""
    seconds = block_rows / costs.rows_per_second + costs.overhead
    return Run(-(-ROWS // block_rows), seconds, costs.tasks_per_second, workers)


def simulate(run: Run) -> float:
    """Play a run event by event, and return its seconds.

    Half of the driver's time per task goes into handing it out, half into taking its result.
    """
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(-(SPREAD**2) / 2, SPREAD, run.tasks) * run.seconds
    step, clock = 0.5 / run.rate, 0.0
    free = [0.0] * min(run.workers, WINDOW)  # when each worker is free again; a heap
    ends: list[float] = []  # of tasks whose results are still out; a heap
    for length in lengths:
        while len(ends) >= WINDOW or (ends and ends[0] <= clock):
            clock = max(clock, heapq.heappop(ends)) + step
        clock += step
        end = max(clock, heapq.heappop(free)) + length
        heapq.heappush(free, end)
        heapq.heappush(ends, end)
    while ends:
        clock = max(clock, heapq.heappop(ends)) + step
    return clock


def measure(cells: int = 1000) -> dict[str, float]:
    """Return how many empty cells a second the driver can handle on this machine."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray  # noqa: PLC0415

    from psilonnet.scale import outcomes, run_cells  # noqa: PLC0415

    work = [{"n": n} for n in range(cells)]
    ray.init(address="local", include_dashboard=False, log_to_driver=False)
    try:
        list(outcomes(_nothing, work[:50], "local"))  # starts the workers
        start = perf_counter()
        list(outcomes(_nothing, work, "local"))
        handed = perf_counter() - start
        with TemporaryDirectory() as folder:
            start = perf_counter()
            run_cells(_nothing, work, folder, cluster="local", progress=False)
            written = perf_counter() - start
    finally:
        ray.shutdown()
    return {"tasks_per_second": cells / handed, "cells_per_second": cells / written}


def _nothing(_: object) -> int:
    return 0


def main() -> None:
    """Print the formula beside the simulation, and the largest difference between them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="the driver of this machine")
    if parser.parse_args().measure:
        print_figures(measure())
        return
    costs, worst = Costs(), 0.0
    cases = [("models, 1 per task", lambda w: fitting(costs, w, 1))]
    many = GROUPS_PER_TASK
    cases += [(f"models, {many} per task", lambda w: fitting(costs, w, many))]
    cases += [("small models, 1 per task", lambda w: fitting(costs, w, 1, small=True))]
    cases += [(f"small models, {many} per task", lambda w: fitting(costs, w, many, small=True))]
    cases += [("rows, blocks of 10,000", lambda w: predicting(costs, w, 10_000))]
    cases += [("rows, blocks of 1,000,000", lambda w: predicting(costs, w, 1_000_000))]
    print(f"{'work':27}{'workers':>8}{'tasks':>9}{'hours':>9}{'simulated':>11}  bottleneck")
    for name, make in cases:
        for workers in WORKERS:
            run = make(workers)
            played = simulate(run)
            worst = max(worst, abs(played / run.estimate - 1))
            hours, said = run.estimate / 3600, played / 3600
            line = f"{name:27}{workers:8}{run.tasks:9}{hours:9.3f}{said:11.3f}"
            print(f"{line}  {run.bottleneck}")
    print_figures(
        {
            "formula_off_by": worst,
            "models_gb": GROUPS * costs.model_bytes / 1e9,
            "index_mb": GROUPS * costs.index_bytes / 1e6,
            "footers_s_per_million_files": 1e6 / costs.footers_per_second,
        }
    )


if __name__ == "__main__":
    main()
