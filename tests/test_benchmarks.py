"""Benchmarks end with one JSON object that has its keys; the long run looks at the figures too."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.record import write_line
from benchmarks.scale_model import Costs, fitting, predicting, simulate

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


POPULATION_KEYS = {
    "ratio_m1_worst",
    "ratio_w128_m13",
    "ratio_w500_m13",
    "ratio_worst",
    "halving_cost",
}
RUNTIMES = ("torch", "numpy", "onnx", "scikit-learn_MLP", "random_forest")
KEYS = {
    "monotone": {"worst_over_autograd"},
    "step": STEP_KEYS,
    "population": POPULATION_KEYS,
    "fit_step": {"worst_ratio_l1", "worst_ratio_l2", "ratio_m1", "ratio_m10", "overhead_w64_ms"},
    "group_step": {"uneven_over_even_dealt", "rows_with_padding_dealt", "models_per_core_hour"},
    "partition": {"partition_rows_per_s", "partition_peak_mb_fifth", "partition_peak_mb"},
    "certify": {"global_over_predict", "local_over_predict"},
    "fit": {"psilonnet_seconds"},
    "predict": {f"{kind}_{name}" for kind in ("latency_us", "rows_per_s") for name in RUNTIMES},
    "scale": {
        "models_per_core_hour",
        "plain_loop_models_per_core_hour",
        "cost_flatness",
        "rows_per_s_core",
        "files_over_bare",
        "ray_over_bare",
        "peak_mb_quarter",
    },
}
TRAINED_KEYS = {
    "trained_groups",
    "trained_sampled_from",
    "trained_groups_per_core_hour",
    "compared_groups",
    "compared_equal",
}


def last_line(repo, module, *words):
    done = subprocess.run(
        [sys.executable, "-m", module, *(words or ["--quick"])],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
        timeout=1200,  # most take a minute on a free core, shards five; no measure of speed
    )
    return json.loads(done.stdout.splitlines()[-1])


SLOW = ("group_step", "partition", "predict", "scale", "step")  # a minute and more each


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in KEYS]
)
def test_benchmark_runs_and_ends_with_its_keys(name, repo):
    figures = last_line(repo, f"benchmarks.{name}", "--tiny")
    assert KEYS[name] <= set(figures)


@pytest.mark.long
def test_step_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.step")
    assert set(figures) == STEP_KEYS
    assert all(0 < value < 10 for value in figures.values())
    assert figures["penalty_share"] < 0.1  # a share of a few per cent, on a machine under load


@pytest.mark.long
def test_population_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.population")
    assert set(figures) == POPULATION_KEYS
    assert figures["ratio_w128_m13"] < 1  # members side by side cost less than one by one
    assert figures["halving_cost"] <= 4.5


@pytest.mark.long
def test_monotone_networks_take_at_most_twice_the_time_of_autograd(repo):
    assert last_line(repo, "benchmarks.monotone")["worst_over_autograd"] < 2  # 1.3 when measured


@pytest.mark.long
def test_certificate_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.certify")
    assert {"global_over_predict", "local_over_predict"} <= set(figures)
    assert figures["global_over_predict"] < 3  # 1.2 on a quiet machine
    assert figures["local_over_predict"] < 120  # 40 on a quiet machine
    assert max(ms for name, ms in figures.items() if name.startswith("linear_ms")) < 5  # 3.3
    assert figures["auto_seconds"] < 60  # 11 on a quiet machine


@pytest.mark.long
def test_fit_benchmark_ends_with_its_figures(repo):
    assert last_line(repo, "benchmarks.fit")["psilonnet_seconds"] > 0


@pytest.mark.long
def test_files_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.predict_files")
    assert {"rows_per_s_core", "ray_over_bare", "peak_mb_quarter"} <= set(figures)
    assert figures["files_over_bare"] > 0.5  # 0.9 and more on a quiet machine
    assert figures["peak_mb"] < 1.2 * figures["peak_mb_quarter"]


@pytest.mark.long
def test_partition_benchmark_trains_and_compares(repo):
    figures = last_line(repo, "benchmarks.partition", "--tiny", "--train=1")
    assert set(figures) >= TRAINED_KEYS
    assert figures["compared_equal"] == figures["compared_groups"] == figures["trained_groups"]


def test_figures_are_kept_a_line_for_each_command(repo, tmp_path):
    out = tmp_path / "benchmarks.jsonl"
    earlier = [f"python -m benchmarks.{words}" for words in ("certify", "monotone --tiny", "step")]
    for command in earlier:
        write_line({"command": command, "figures": {}}, out)
    words = [sys.executable, "-m", "benchmarks.record", "monotone --tiny", f"--out={out}"]
    subprocess.run(words, cwd=repo, check=True)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["command"] for line in lines] == earlier
    assert [set(line["figures"]) for line in lines] == [set(), KEYS["monotone"], set()]


def test_cost_model_agrees_with_the_simulation():
    for workers, per_task in ((16, 1), (128, 32), (1024, 32)):
        run = replace(fitting(Costs(), workers, per_task), tasks=20_000)
        assert simulate(run) == pytest.approx(run.estimate, rel=0.15)
    for workers in (2, 64):
        run = predicting(Costs(), workers, 1_000_000)
        assert simulate(run) == pytest.approx(run.estimate, rel=0.15)
    assert fitting(Costs(), 1024, 1, small=True).bottleneck == "driver"
    assert fitting(Costs(), 128, 32).bottleneck == "workers"


@pytest.mark.long
def test_prediction_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.predict")
    assert figures["pruned_over_dense_throughput"] > 1
    assert figures["pruned_over_dense_bytes"] < 0.5
    assert all(figures[key] > 0 for key in KEYS["predict"])


@pytest.mark.long
def test_memory_is_flat_while_rows_are_dealt(repo):
    figures = last_line(repo, "benchmarks.partition", "--rows=10000000")
    assert figures["partition_rows_kept"] == 10_000_000
    assert figures["partition_peak_mb"] < 1500
    assert figures["partition_peak_mb"] < 1.2 * figures["partition_peak_mb_fifth"]


@pytest.mark.long
def test_models_of_shards_are_those_from_memory_beside_a_group_with_a_third_of_the_rows(repo):
    words = ["--heavy", "--rows=800000", "--train=2", "--compare=1"]
    figures = last_line(repo, "benchmarks.partition", *words)
    assert figures["trained_shards"] == figures["partition_shards"] == 2
    assert figures["trained_rows"] == figures["partition_rows_kept"] < 650_000
    assert figures["trained_sampled_from"] == pytest.approx(800_000 / 3, rel=0.01)
    assert figures["trained_errors"] == 0
    assert figures["compared_equal"] == figures["compared_groups"] > 1000


@pytest.mark.long
def test_scale_benchmark_ends_with_its_figures(repo):
    figures = last_line(repo, "benchmarks.scale")
    # Groups side by side cost less than one by one.
    assert figures["models_per_core_hour"] > figures["plain_loop_models_per_core_hour"]
    assert 0.5 < figures["cost_flatness"] < 2  # 1.0 on a quiet machine
    assert {"rows_per_s_core", "files_over_bare"} <= set(figures)
