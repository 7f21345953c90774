"""A driver for the fault tests: python cells_driver.py FOLDER N_CELLS CLUSTER"""

import sys
import time

import numpy as np

from psilonnet.scale import run_cells


def work(cell):
    """Take a while and return numbers that depend on the cell alone."""
    time.sleep(cell["seconds"])
    draws = np.random.default_rng(cell["seed"]).normal(size=20_000)  # too large to be sent inline
    return {"mean": float(draws.mean()), "draws": draws.round(6).tolist()}


def make_cells(n, seconds=0.3):
    return [{"seed": seed, "seconds": seconds} for seed in range(n)]


if __name__ == "__main__":
    folder, n, cluster = sys.argv[1:]
    run_cells(work, make_cells(int(n)), folder, cluster=cluster, retries=50, progress=False)
