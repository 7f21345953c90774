"""One training, three selections: what is judged of a table, and what is said of all."""

import json
import sys

import pytest

from experiments.data import DEVELOPMENT
from experiments.studies import trained_once
from psilonnet import Design

QUICK = {
    "designs": [Design(), Design(directions="l2", pieces=4)],
    "width": 16,
    "depth": 1,
    "max_steps": 60,
    "cv": 2,
}


@pytest.fixture
def quick(monkeypatch, tmp_path, data_dir, capsys):
    """Return a function that runs the study with some tables, and returns its last line."""
    monkeypatch.setattr(trained_once, "SETTINGS", QUICK)
    monkeypatch.setattr(trained_once, "ROWS", 300)
    monkeypatch.setattr(trained_once, "DRAWS", 1)
    folders = ["--data", str(data_dir), "--cells", str(tmp_path), "--results", str(tmp_path)]

    def run(*tables, flags=()):
        monkeypatch.setattr(trained_once, "DEVELOPMENT", tables)
        monkeypatch.setattr(trained_once, "COMPARED", tables)
        monkeypatch.setattr(sys, "argv", ["trained_once", *folders, *flags])
        trained_once.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_tables_are_the_development_tables():
    assert set(trained_once.BEFORE) == set(DEVELOPMENT)
    assert set(trained_once.COMPARED) < set(DEVELOPMENT)
    assert len(trained_once.full_cells()) == 14
    assert len(trained_once.small_cells()) == 60


def test_a_table_is_judged_once_and_said_in_one_line(quick, tmp_path, monkeypatch):
    said = quick("heloc", "brazilian_houses")
    assert said["fits"] == 2
    assert said["worst_loss_ratio"] >= said["loss_ratio"] > 0
    assert said["balanced_over_accurate_bound"] <= 1
    assert said["provable_over_accurate_bound"] <= said["balanced_over_accurate_bound"]
    assert abs(said["mean_optimism"]) < 0.5
    lines = (tmp_path / "trained_once.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 3
    monkeypatch.setattr(trained_once, "compute", None)  # what is there is not computed again
    assert quick("heloc", "brazilian_houses") == said


def test_small_draws_are_a_study_of_their_own(quick, tmp_path):
    said = quick("heloc", flags=["--small"])
    assert set(said) == {
        "fits",
        "mean_optimism",
        "calibrated_less_uncalibrated",
        "mean_seconds",
    }
    assert said["fits"] == 1
    assert (tmp_path / "trained_once_small.csv").exists()


def test_figures_are_means_over_the_tables():
    def line(name, selection, loss, bound):
        scores = {"held_out_score": 0.8, "valid_score": 0.7, "seconds": 2.0}
        return {
            "dataset": name,
            "selection": selection,
            "loss": loss,
            "uncalibrated_loss": loss + 0.1,
            "bound": bound,
            **scores,
        }

    before = trained_once.BEFORE
    lines = [
        line(name, selection, factor * before[name], bound)
        for name, factor in (("higgs", 0.5), ("heloc", 2.0), ("brazilian_houses", 0.25))
        for selection, bound in (("accurate", 8.0), ("balanced", 4.0), ("provable", 1.0))
    ]
    assert trained_once.against_before(lines) == {
        "loss_ratio": pytest.approx(0.25 ** (1 / 3)),
        "loss_ratio_without_brazilian_houses": pytest.approx(1.0),
        "worst_table": "heloc",
        "worst_loss_ratio": pytest.approx(2.0),
    }
    assert trained_once.over_accurate(lines) == pytest.approx(
        {
            "balanced_over_accurate_loss": 1.0,
            "balanced_over_accurate_bound": 0.5,
            "provable_over_accurate_loss": 1.0,
            "provable_over_accurate_bound": 0.125,
        }
    )
    said = trained_once.honesty(lines)
    assert said["fits"] == 3
    assert said["mean_optimism"] == pytest.approx(0.1)
    assert said["calibrated_less_uncalibrated"] == pytest.approx(-0.1)
