"""Many models on a real Ray cluster of two nodes that loses workers and its driver.

One group kills every worker that touches it. Set PSILONNET_KILLS to kill more workers at random
than the few of the everyday run.
"""

import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from disturbance import KILLS, busy_workers, two_nodes
from psilonnet.deploy.model_file import read_model_file
from psilonnet.scale.model_folder import ModelFolder

DRIVER = Path(__file__).with_name("many_driver.py")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="finds Ray's workers through /proc (Linux)"
)


def load_driver():
    spec = importlib.util.spec_from_file_location("many_driver", DRIVER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Disturbed:
    """A driver on a cluster, and what can happen to it."""

    def __init__(self, folder, n, address):
        self.folder, self.words = ModelFolder(folder), [str(folder), str(n), address]
        self.log = folder.with_name("driver.log")
        self.chance = random.Random(0)
        self.killed = 0
        self.start()

    def start(self):
        with self.log.open("a") as log:
            command = [sys.executable, str(DRIVER), *self.words]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    def parts(self):
        return len(self.folder.shards())

    def wait_for_part(self):
        """Wait until one more task is done."""
        before, end = self.parts(), time.monotonic() + 240
        while self.parts() == before:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, f"nothing is done: {self.log.read_text()}"
            time.sleep(0.02)

    def kill_workers(self, count):
        """Kill at random moments, but let one task end between two kills."""
        target = self.killed + count
        while self.killed < target:
            self.wait_for_part()
            time.sleep(self.chance.uniform(0, 0.5))
            for victim in busy_workers()[:1]:
                os.kill(victim, signal.SIGKILL)
                self.killed += 1

    def restart_driver(self):
        self.process.kill()
        self.process.wait()
        self.start()


def disturb(run):
    try:
        run.kill_workers(KILLS // 2)
        run.wait_for_part()
        run.restart_driver()
        run.kill_workers(KILLS - KILLS // 2)
        assert run.process.wait(timeout=600) == 0, run.log.read_text()
    finally:
        run.process.kill()
        run.process.wait()


def test_faults_lose_no_model_and_name_the_bad_groups(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")  # a busy machine would starve them
    driver = load_driver()
    n = 4 * (6 + 2 * KILLS)
    with two_nodes() as (cluster, _):
        run = Disturbed(tmp_path / "models", n, cluster.address)
        disturb(run)
    assert run.killed == KILLS
    index = pd.read_parquet(tmp_path / "models" / "index.parquet").set_index("group")
    calm = driver.fit(tmp_path / "calm", n, poisoned=False)
    undisturbed = pd.read_parquet(calm).set_index("group")
    assert sorted(index.index) == sorted([*undisturbed.index, driver.POISON])  # each once
    assert sorted(index.index[index.error.notna()]) == ["g1", driver.POISON]
    assert "constant or empty" in index.error["g1"]
    assert "worker" in index.error[driver.POISON].lower()
    good = undisturbed.index[undisturbed.error.isna()]
    assert (index.path[good] == undisturbed.path[good]).all()
    assert index.bound[good].to_numpy() == pytest.approx(undisturbed.bound[good], rel=1e-3)
    for path in index.path[good]:
        read_model_file(tmp_path / "models" / path)  # with its checksum
    assert len(list((tmp_path / "models").glob("models/**/*.psilon"))) == len(good)
