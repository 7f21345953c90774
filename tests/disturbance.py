"""A driver on a real Ray cluster of two nodes, and what can happen to it."""

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

from sizes import size

KILLS = size(1, long=20)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="finds Ray's workers through /proc (Linux)"
)


@contextmanager
def small_disk(folder, size):
    """A disk of so many bytes at a folder; ``resize_disk`` gives it more."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize_disk(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)


@contextmanager
def one_node():
    head = {"num_cpus": 1, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield cluster
    finally:
        cluster.shutdown()


@contextmanager
def two_nodes():
    with one_node() as cluster:
        yield cluster, cluster.add_node(num_cpus=1)


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
    """A driver in a process of its own: a script, its words, and how many results it has so far."""

    def __init__(self, words, log, count):
        self.words, self.log, self.count = words, log, count
        self.killed = 0
        self.start()

    def start(self):
        with self.log.open("a") as log:
            command = [sys.executable, *map(str, self.words)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    def wait_for(self, happens, what, seconds=240):
        end = time.monotonic() + seconds
        while not happens():
            assert self.process.poll() in (None, -signal.SIGKILL), self.said()
            assert time.monotonic() < end, f"waited in vain for {what}: {self.said()}"
            time.sleep(0.02)

    def wait_for_results(self, count):
        self.wait_for(lambda: self.count() >= count, f"{count} results")

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

    def refuse_writes(self, folder):
        """Let the folder of results vanish until a write has failed."""
        away = folder.with_name("away")
        before = self.said().count("writing again")
        folder.rename(away)
        try:
            self.wait_for(lambda: self.said().count("writing again") > before, "a refused write")
        finally:
            away.rename(folder)

    def said(self):
        return self.log.read_text()
