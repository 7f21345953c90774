"""What lies between proof and attack, on a small scale."""

from functools import partial

import pytest

from experiments.comparison import verdicts
from experiments.frames import fit_ours


@pytest.fixture
def count(data_dir, monkeypatch):
    quick = {"max_steps": 60, "width": 8, "cv": 2}
    monkeypatch.setattr(verdicts, "ROWS", 40)
    monkeypatch.setattr(verdicts, "BUDGET", 20)
    monkeypatch.setattr(verdicts, "fit_ours", partial(fit_ours, **quick))
    return lambda name: verdicts.compute({"dataset": name, "model": "psilonnet"}, data=data_dir)


@pytest.mark.parametrize("name", ["heloc", "house_sales"])
def test_each_row_that_is_left_is_proven_refuted_or_open(name, count):
    told = count(name)
    assert told["left"] == told["proven"] + told["refuted"] + told["open"]
    assert told["left"] <= told["survive"] <= told["rows"] == 40


def test_a_table_may_have_no_row_left(count, monkeypatch):
    monkeypatch.setitem(verdicts.SIZES, "psilonnet", 1e-6)
    told = count("heloc")
    assert told["survive"] > 0
    assert [told[name] for name in verdicts.COUNTS] == [0, 0, 0, 0]
