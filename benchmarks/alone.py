"""Work in a process of its own, which tells its seconds and its peak memory (Linux only)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from time import perf_counter, process_time

from benchmarks.figures import print_figures


def run_alone(module: str, *words: object) -> dict[str, float]:
    """Run a benchmark with ``--child`` and these words, and return the figures it prints."""
    command = [sys.executable, "-m", module, "--child", *map(str, words)]
    done = run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def print_cost(work: Callable[[], object]) -> None:
    """Do the work, and print its seconds and the peak memory of this process."""
    start, start_cpu = perf_counter(), process_time()
    work()
    seconds, cpu = perf_counter() - start, process_time() - start_cpu
    # Not getrusage: the peak that it tells begins with that of the parent.
    facts = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(facts["VmHWM"].split()[0]) / 1024
    print_figures({"seconds": seconds, "cpu": cpu, "peak_mb": peak})
