"""Files whose driver is killed while it deals the rows and while the models are fitted."""

import os
import random
import re
import signal
import time

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from disturbance import KILLS, Disturbed, needs_proc, two_nodes
from psilonnet.scale.many.folder import ModelFolder
from scale.many import files_driver
from sizes import size

GROUPS = size(20, long=40)


@pytest.fixture
def driver(monkeypatch):
    driver = files_driver
    for module, name in (
        (driver.blocks, "BATCH"), (driver.file_rows, "BLOCK_ROWS"),
        (driver.file_rows, "STRETCH_ROWS"), (driver.shards, "SHARD_CELLS"),
        (driver.spill, "SHARD_CELLS"), (driver.shards, "GROUPS_PER_TASK"),
        (driver.fit_module, "RETRIES"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, getattr(module, name))  # is put back at the end
    return driver


def dealt(folder):
    """Count what a run leaves on its way to the first model: stretches and shards."""
    return len([*folder.work.glob("spill/*.arrow"), *folder.work.glob("shards/*.parquet")])


def start(tmp_path, *more):
    folder = ModelFolder(tmp_path / "models")
    words = [files_driver.__file__, folder.folder, tmp_path / "in", *more]
    return Disturbed(words, tmp_path / "driver.log", lambda: dealt(folder) + len(folder.shards()))


class Forked:
    """A driver that works in forks of one process, which can be killed."""

    def __init__(self, tmp_path):
        self.run = start(tmp_path, "again")

    def __enter__(self):
        self.run.wait_for(self.drivers, "the first driver", 600)  # imports, on a busy machine
        return self

    def __exit__(self, *_):
        if self.run.process.poll() is None:  # else it has no fork
            self.run.process.kill()
            os.kill(self.drivers()[-1], signal.SIGKILL)

    def drivers(self):
        """Return the numbers of all drivers so far."""
        return [int(number) for number in re.findall(r"driver (\d+)\n", self.run.said())]

    def kill(self, times, count):
        """Kill the one at work at random moments, but let each count something first."""
        chance = random.Random(0)
        for _ in range(times):
            before, drivers = count(), self.drivers()
            self.run.wait_for(lambda: count() > before, "progress")  # noqa: B023
            time.sleep(chance.uniform(0, 0.1))
            os.kill(drivers[-1], signal.SIGKILL)
            self.run.killed += 1
            self.run.wait_for(lambda: len(self.drivers()) > len(drivers), "a driver")  # noqa: B023


def check_same(folder, calm):
    """Each group is there once, with the same rows and, to the last bit, the same numbers."""
    lines, undisturbed = (
        pd.read_parquet(path).set_index("group").sort_index().drop(columns="seconds")
        for path in (folder / "index.parquet", calm)
    )
    pd.testing.assert_frame_equal(lines, undisturbed)
    assert lines.error.isna().all()
    assert (lines.sampled_from == 20).all()
    assert len(list(folder.glob("models/**/*.psilon"))) == len(lines)
    for path in lines.path:
        ours, theirs = load_file(folder / path), load_file(calm.parent / path)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    assert not (folder / "work").exists()


def test_driver_that_is_killed_in_mid_dealing_goes_on(tmp_path, driver):
    driver.write_files(tmp_path / "in", GROUPS)
    run = start(tmp_path)
    run.wait_for_results(3)
    first = tmp_path / "models" / "work" / "spill" / "00000.arrow"
    written = first.stat().st_mtime_ns
    run.restart_driver()
    assert first.stat().st_mtime_ns == written
    assert run.process.wait(timeout=300) == 0, run.said()
    check_same(tmp_path / "models", driver.fit(tmp_path / "calm", tmp_path / "in"))


@pytest.mark.long
def test_driver_that_is_killed_again_and_again_at_random_moments_loses_nothing(tmp_path, driver):
    driver.write_files(tmp_path / "in", 3 * GROUPS)
    folder = ModelFolder(tmp_path / "models")
    with Forked(tmp_path) as forked:
        forked.kill(KILLS, lambda: dealt(folder))
        assert (folder.work / "spill").exists()  # rows are still being dealt
        assert not folder.shards()
        forked.kill(KILLS, lambda: len(folder.shards()))
        assert forked.run.process.wait(timeout=600) == 0, forked.run.said()
    assert len(forked.drivers()) == forked.run.killed + 1 == 2 * KILLS + 1
    check_same(tmp_path / "models", driver.fit(tmp_path / "calm", tmp_path / "in"))


@pytest.mark.long
@needs_proc
def test_workers_and_drivers_that_are_killed_lose_nothing(tmp_path, driver):
    driver.write_files(tmp_path / "in", GROUPS)
    with two_nodes() as (cluster, _):
        run = start(tmp_path, cluster.address, 100)
        run.wait_for_results(5)
        run.restart_driver()
        run.kill_workers(KILLS // 2)
        run.restart_driver()
        run.kill_workers(KILLS - KILLS // 2)
        assert run.process.wait(timeout=900) == 0, run.said()
    check_same(tmp_path / "models", driver.fit(tmp_path / "calm", tmp_path / "in"))
