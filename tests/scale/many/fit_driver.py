"""A driver for the fault tests: python fit_driver.py FOLDER N_GROUPS CLUSTER RETRIES"""

import os
import signal
import sys
import time

import numpy as np
import pandas as pd

from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many
from psilonnet.scale.many import fit as fit_module
from psilonnet.scale.many import shards

POISON = "poison"


class Fragile(PSiLONRegressor):
    """Dies with its process when it meets the poisoned group, and is slow enough to be killed."""

    def _fitting(self, table, *more):
        if (table.column("x").to_numpy() > 1e6).any():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
        yield from super()._fitting(table, *more)


def make_table(n, *, poisoned):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "group": np.repeat([f"g{k}" for k in range(n)], 20),
            "x": rng.normal(size=20 * n),
            "y": rng.normal(size=20 * n),
        }
    )
    frame.loc[frame.group == "g1", "x"] = 1.0  # constant: fails, with a reason
    bad = pd.DataFrame({"group": POISON, "x": [1e7, 1.0] * 10, "y": range(20)})
    return pd.concat([frame, bad]) if poisoned else frame


def fit(folder, n, *, poisoned, cluster=None, retries=0):
    shards.GROUPS_PER_TASK = 4  # many short tasks
    fit_module.RETRIES = retries  # the poison kills a worker each time
    estimator = Fragile(
        width=8, depth=1, max_steps=20, reg_strength=1e-3, designs=[Design()], cv=2, random_state=0
    )
    table = make_table(n, poisoned=poisoned)
    given = {"by": "group", "target": "y", "estimator": estimator, "progress": False}
    return fit_many(table, out=folder, cluster=cluster, **given)


if __name__ == "__main__":
    where, groups, address, again = sys.argv[1:]
    fit(where, int(groups), poisoned=True, cluster=address, retries=int(again))
