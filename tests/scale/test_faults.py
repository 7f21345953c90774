"""A real Ray cluster of two nodes that loses workers, a node, its driver and, once, its disk.

Set PSILONNET_KILLS to kill more workers than the few of the everyday run.
"""

import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from psilonnet.scale import Results, run_cells

DRIVER = Path(__file__).with_name("driver.py")
KILLS = int(os.environ.get("PSILONNET_KILLS", "4"))

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="finds Ray's workers through /proc (Linux)"
)


def load_driver():
    spec = importlib.util.spec_from_file_location("driver", DRIVER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def two_nodes():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        yield cluster, cluster.add_node(num_cpus=1)
    finally:
        cluster.shutdown()


def busy_workers():
    """Return the processes of this test's own cluster that compute a cell at this moment."""
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    busy = [p for p in processes if read(p / "cmdline").startswith("ray::compute")]
    return [int(p.name) for p in busy if descends_from_us(p)]


def descends_from_us(process):
    """Follow the parents up; another Ray on this machine is not ours to kill."""
    number = int(process.name)
    while number > 1 and number != os.getpid():
        found = re.search(r"^PPid:\s*(\d+)", read(Path("/proc") / str(number) / "status"), re.M)
        number = int(found[1]) if found else 0
    return number == os.getpid()


def read(path):
    try:
        return path.read_text()
    except OSError:  # the process ended in the meantime
        return ""


class Disturbed:
    """A driver on a cluster, and what can happen to it."""

    def __init__(self, folder, n, address):
        self.folder, self.n, self.address = folder, n, address
        self.log = folder.with_name("driver.log")
        self.killed = 0
        self.start()

    def start(self):
        command = [sys.executable, str(DRIVER), str(self.folder), str(self.n), self.address]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    def wait_for(self, happens, what):
        end = time.monotonic() + 120
        while not happens():
            assert self.process.poll() in (None, -signal.SIGKILL), self.said()
            assert time.monotonic() < end, f"waited in vain for {what}: {self.said()}"
            time.sleep(0.02)

    def wait_for_results(self, count):
        self.wait_for(lambda: len(Results(self.folder)) >= count, f"{count} results")

    def kill_workers(self, count):
        chance = random.Random(0)
        target = self.killed + count
        while self.killed < target:
            self.wait_for(busy_workers, "a busy worker")
            time.sleep(chance.uniform(0, 0.25))
            for victim in busy_workers()[:1]:
                os.kill(victim, signal.SIGKILL)
                self.killed += 1

    def restart_driver(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def refuse_writes(self):
        """Let the folder of results vanish until a write has failed."""
        away = self.folder.with_name("away")
        before = self.said().count("writing again")
        self.folder.rename(away)
        try:
            self.wait_for(lambda: self.said().count("writing again") > before, "a refused write")
        finally:
            away.rename(self.folder)

    def said(self):
        return self.log.read_text()


def test_faults_lose_nothing_and_repeat_nothing(tmp_path):
    driver = load_driver()
    n = 12 + 2 * KILLS
    folder = tmp_path / "results"
    with two_nodes() as (cluster, node):
        run = Disturbed(folder, n, cluster.address)
        run.wait_for_results(1)
        run.kill_workers(KILLS // 2)
        run.refuse_writes()
        run.restart_driver()
        run.wait_for_results(len(Results(folder)) + 1)
        cluster.remove_node(node)
        run.kill_workers(KILLS - KILLS // 2)
        assert run.process.wait(timeout=300) == 0, run.said()
    undisturbed = run_cells(
        driver.work, driver.make_cells(n, 0.0), tmp_path / "calm", progress=False
    )
    disturbed = Results(folder)
    assert run.killed == KILLS
    assert len(disturbed) == n
    assert sorted(cell["seed"] for cell in disturbed) == list(range(n))
    for cell in disturbed:
        assert disturbed[cell] == undisturbed[{**cell, "seconds": 0.0}]
    assert not list(folder.glob(".*"))
