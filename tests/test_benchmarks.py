"""Benchmarks end with one JSON object that has the promised keys."""

import json
import subprocess
import sys

STEP_KEYS = {
    "p_net_eager",
    "p_resnet_eager",
    "p_net_compiled",
    "p_resnet_compiled",
    "l1_ib_over_p",
    "l1_ob_over_p",
    "s_over_p",
    "penalty_share",
}


def test_step_benchmark_ends_with_its_figures(repo):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.step", "--quick"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == STEP_KEYS
    assert all(0 < value < 10 for value in figures.values())
    assert figures["penalty_share"] < 0.05
