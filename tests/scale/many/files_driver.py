"""A driver for the fault tests: python files_driver.py FOLDER FILES [again | CLUSTER RETRIES]

With ``again`` it works in a fork of the process, and in another one each time that it is killed.
"""

import os
import sys
import time
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many
from psilonnet.scale.files import blocks
from psilonnet.scale.many import file_rows, shards, spill
from psilonnet.scale.many import fit as fit_module


class Slow(PSiLONRegressor):
    """Is slow enough to be killed."""

    def _fitting(self, *given):
        time.sleep(0.05)
        yield from super()._fitting(*given)


def write_files(folder, groups, rows_per_group=20):
    """Write the rows of all groups, mixed, to six files; the keys of some are floats."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = groups * rows_per_group
    keys = rng.permutation(np.repeat(np.arange(groups), rows_per_group))
    columns = {"key": keys, "x": rng.normal(size=rows), "y": rng.normal(size=rows)}
    for k in range(6):
        part = {name: cells[k::6] for name, cells in columns.items()}
        part["key"] = part["key"].astype([np.int32, float, np.int64][k % 3])
        pq.write_table(pa.table(part), folder / f"{k}.parquet", row_group_size=50)


def small_pieces():
    """Let some hundred rows have many stretches, shards and tasks."""
    blocks.BATCH, file_rows.BLOCK_ROWS, file_rows.STRETCH_ROWS = 25, 50, 50
    shards.SHARD_CELLS = spill.SHARD_CELLS = 300
    shards.GROUPS_PER_TASK = 2


def slowly(batches):
    for batch in batches:
        yield batch
        time.sleep(0.05)


def fit(folder, files, cluster=None, retries=0, kind=PSiLONRegressor):
    small_pieces()
    fit_module.RETRIES = retries
    small = {"width": 8, "depth": 1, "max_steps": 20, "cv": 2, "random_state": 0}
    estimator = kind(**small, reg_strength=1e-3, designs=[Design()])
    given = {"by": "key", "target": "y", "estimator": estimator, "max_group_rows": 19}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\d+ groups have more than 19 rows")
        return fit_many(files, **given, out=folder, cluster=cluster, progress=False)


def again_and_again(work):
    """Do the work in a fork until it is not killed: the imports are made only once."""
    while True:
        child = os.fork()
        if not child:
            print(f"driver {os.getpid()}", flush=True)
            work()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    out, source, *rest = sys.argv[1:]
    staying = spill._staying
    spill._staying = lambda given, sample: staying(slowly(given), sample)
    if rest == ["again"]:
        again_and_again(lambda: fit(out, source, kind=Slow))
    else:
        fit(out, source, *(rest[:1]), *map(int, rest[1:]), kind=Slow)
