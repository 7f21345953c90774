"""Recipes trained anew beside the recipe as it is."""

import json
import sys
from math import inf

import pytest

from experiments.studies import finalists
from experiments.studies.finalists import AS_IT_IS, Trial, constants, summary
from psilonnet.estimators import paths

OTHER = "level parts are never cut"
QUICK = {"width": 8, "depth": 1, "max_steps": 20, "cv": 2}


def test_constants_are_put_back_also_after_an_error():
    before = paths.RISES

    def fail():
        with constants({"RISES": inf}):
            assert inf == paths.RISES
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert before == paths.RISES


def test_trials_are_compared_on_the_tables_that_both_have():
    def line(trial, name, loss, seconds):
        return {"trial": trial, "dataset": name, "valid_loss": loss, "seconds": seconds}

    lines = [
        line(AS_IT_IS, "heloc", 0.5, 10.0),
        line(AS_IT_IS, "higgs", 0.6, 30.0),
        line(OTHER, "heloc", 0.25, 5.0),
        line(OTHER, "jannis", 9.0, 5.0),
    ]
    assert summary(lines) == {OTHER: {"tables": 1, "loss": 0.5, "time": 0.5}}


def test_cells_are_trained_once_and_written(monkeypatch, tmp_path, data_dir, capsys):
    trials = {AS_IT_IS: Trial(QUICK), "wider": Trial({**QUICK, "width": 12})}
    monkeypatch.setattr(finalists, "TRIALS", trials)
    monkeypatch.setattr(finalists, "TABLES", ("heloc",))
    folders = ["--data", str(data_dir), "--cells", str(tmp_path), "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["finalists", *folders])
    finalists.main()
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["wider"]["tables"] == 1
    assert 0.5 < said["wider"]["loss"] < 2
    assert len((tmp_path / "finalists.csv").read_text().splitlines()) == 3
