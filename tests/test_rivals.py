"""The comparison with other libraries: what is counted, and what is drawn."""

import json
import sys

import numpy as np
import pytest

from experiments import costs, learning_curves, rivals, steps, strengths
from experiments.data import ALL, load_table
from experiments.rivals_report import DEVELOPMENT, figures, ranks, wins, write_report
from psilonnet.scale import Results

# table -> losses of three models
MADE_UP = {
    "higgs": {"psilonnet": 0.4, "CatBoost": 0.5, "RF": 0.6},
    "house_sales": {"psilonnet": 0.5, "CatBoost": 0.4, "RF": 0.5},
    "houses": {"psilonnet": 0.2, "CatBoost": 0.4, "RF": 0.3},
}


def lines():
    return [
        {
            "dataset": name,
            "model": model,
            "reading": "fresh" if model == "RF" else "native",
            "protocol": "user",
            "seed": "0",
            "test_loss": str(loss),
        }
        for name, row in MADE_UP.items()
        for model, loss in row.items()
    ]


def test_ranks_share_ties_and_wins_do_not():
    assert ranks(MADE_UP) == {"psilonnet": 1.5, "CatBoost": 2.0, "RF": 2.5}
    assert wins(MADE_UP, "CatBoost") == (2, 3)
    assert wins(MADE_UP, "RF") == (2, 3)


def test_report_tells_both_kinds_of_tables_apart(tmp_path):
    said = write_report(lines(), tmp_path)
    assert said["user_better_than_RF"] == "2 of 3"
    assert said["user_development_median_and_mean_ratio"] == [1.025, 1.0]
    assert said["user_confirmation_median_and_mean_ratio"] == [0.5, 0.5]
    assert "| houses | **0.200** | 0.400 | 0.300 |" in (tmp_path / "rivals.md").read_text()
    ranks_in_words = "| user ranks | psilonnet 1.5, CatBoost 2.0, RF 2.5 |"
    assert ranks_in_words in (tmp_path / "rivals.md").read_text()
    other_split = [{**line, "seed": "1"} for line in lines()]
    assert figures(other_split) == {}


def test_splits_are_averaged_once_they_are_whole():
    def at(seed, factor):
        ours = [x for x in lines() if x["model"] != "RF"]  # on one split only
        more = [{**x, "seed": seed} for x in ours if x["model"] == "CatBoost"]
        changed = [{**x, "seed": seed} for x in ours if x["model"] == "psilonnet"]
        return more + [{**x, "test_loss": str(factor * float(x["test_loss"]))} for x in changed]

    two = lines() + at("1", 1.0)
    assert not any("splits" in name for name in figures(two[:-1]))
    assert figures(two)["user_2_splits_better_than_CatBoost"].endswith("of 6 single fits")
    said = figures(two + at("2", 10.0))  # our mean is four times the loss of one split
    assert said["user_3_splits_ranks"] == {"CatBoost": 1.0, "psilonnet": 2.0}
    assert said["user_3_splits_better_than_CatBoost"] == "0 of 3, 4 of 9 single fits"


def test_development_tables_are_among_all():
    assert set(DEVELOPMENT) < set(ALL)
    keys = {tuple(cell.values()) for cell in rivals.cells()}
    assert len(keys) == len(list(rivals.cells())) == 29 * 5 * 2 + 12 + 29 * 4 * 2


def test_a_report_so_far_computes_nothing_and_says_what_is_missing(tmp_path, monkeypatch, capsys):
    results = Results(tmp_path / "cells" / "rivals")
    finished = [cell for cell in rivals.cells() if (cell["protocol"], cell["seed"]) == ("user", 0)]
    for k, cell in enumerate(finished):
        losses = {"valid_loss": 1.0, "test_loss": 1.0 + k / 1000, "seconds": 2.0}
        results.write(cell, {"task": "classification", **losses})
    folders = ["--cells", str(tmp_path / "cells"), "--results", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["rivals", "--data", "nowhere", *folders, "--so-far"])
    rivals.main()
    assert json.loads(capsys.readouterr().out)["user_better_than_CatBoost"] == "0 of 29"
    assert len((tmp_path / "rivals.csv").read_text().splitlines()) == 1 + 29 * 5
    every = len(list(rivals.cells()))
    missing = f"**Not complete:** {every - 29 * 5} of {every} cells are still missing."
    assert missing in (tmp_path / "rivals.md").read_text()
    assert (tmp_path / "rivals.png").stat().st_size > 10_000


def test_fewer_rows_leave_the_test_rows_alone(data_dir):
    table = load_table("house_sales", data_dir)
    few, many = (rivals.make_parts(table, 0, n_train=10_000, use=rows) for rows in (250, 10_000))
    assert len(few["train"].x) == 250
    assert few["train"].x.equals(many["train"].x[:250])
    assert few["test"].x.equals(many["test"].x)
    assert (few["test"].y == many["test"].y).all()  # in one unit
    quartiles = np.quantile(many["train"].y, [0.25, 0.75])
    assert np.diff(quartiles) == pytest.approx(2)


def test_our_estimator_is_one_of_the_rivals(data_dir, monkeypatch):
    for kind in ("PSiLONClassifier", "PSiLONRegressor"):
        estimator = getattr(rivals, kind)
        quick = {"max_steps": 2, "width": 4, "knots": 0, "reg_strength": 1e-3}
        monkeypatch.setattr(
            rivals, kind, lambda estimator=estimator, quick=quick, **k: estimator(**k, **quick)
        )
    for name in ("higgs", "bike_sharing_demand"):
        for protocol in ("paper", "user"):
            cell = {"dataset": name, "model": "psilonnet", "protocol": protocol, "seed": 0}
            result = rivals.compute(cell, data=data_dir)
            assert 0 < result["test_loss"] < 10
            assert result["bound"] > 0


def test_costs_are_measured_and_drawn(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr(costs, "BUDGETS", {"psilonnet": {"max_steps": 2, "width": 4, "knots": 0}})
    cell = {"dataset": "bike_sharing_demand", "model": "psilonnet", "seed": 0}
    measured = costs.compute(cell, data=data_dir)
    assert 0 < measured["test_loss"] < 10
    monkeypatch.undo()
    made_up = [
        {**cell, "test_loss": 0.9 if cell["model"] in costs.BUDGETS else 1, "seconds": 1 + k}
        for k, cell in enumerate(costs.cells())
    ]
    found = costs.points(made_up)
    assert found["psilonnet"][1] == pytest.approx(0.9)
    assert found["CatBoost"][1] == 1
    costs.draw(found, tmp_path / "costs.png")
    assert (tmp_path / "costs.png").stat().st_size > 10_000


def test_learning_curves_are_counted_and_drawn(tmp_path):
    made_up = [
        {
            "dataset": cell["dataset"],
            "model": cell["model"],
            "rows": str(cell["rows"]),
            "test_loss": str((cell["model"] != "psilonnet" or cell["rows"] > 1000) + 0.1),
        }
        for cell in learning_curves.cells()
    ]
    found = learning_curves.counts(made_up)
    assert [found[f"best_at_{size}"] for size in (250, 500, 1000)] == [6, 6, 6]
    found = learning_curves.against(made_up, "CatBoost")
    assert found["wins_CatBoost"] == [6, 6, 6, 0, 0, 0]
    assert found["over_CatBoost"] == pytest.approx([1 / 11] * 3 + [1] * 3, abs=1e-3)
    learning_curves.draw(made_up, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_learning_curves_are_of_tables_with_enough_rows_to_test_on(data_dir):
    for name in learning_curves.TABLES:
        table = load_table(name, data_dir)
        parts = rivals.make_parts(table, 0, n_train=max(learning_curves.SIZES))
        assert len(parts["test"].y) > 2000


def test_grids_are_compared_by_ratios(data_dir, monkeypatch):
    assert strengths.GRIDS["three"] == (5e-4, 5e-3, 5e-2)
    made_up = [
        {**cell, **dict.fromkeys(strengths.FIGURES, 2.0 if cell["grid"] == "three" else 1.0)}
        for cell in strengths.cells()
    ]
    assert strengths.ratios(made_up, "grid") == pytest.approx(dict.fromkeys(strengths.FIGURES, 2.0))
    quick = {"max_steps": 2, "width": 4, "knots": 0}
    fit = strengths.fit_ours
    monkeypatch.setattr(strengths, "fit_ours", lambda *a, **k: fit(*a, **k, **quick))
    result = strengths.compute({"dataset": "higgs", "grid": "three"}, data=data_dir)
    assert set(result) == set(strengths.FIGURES)
    assert 1 <= result["networks"] <= 3


def test_steps_are_given_to_the_estimator(data_dir, monkeypatch):
    fitted = []

    def fit(*arguments, **settings):
        fitted.append(fit_ours(*arguments, **settings, width=4, knots=0))
        return fitted[0]

    fit_ours = strengths.fit_ours
    monkeypatch.setattr(strengths, "fit_ours", fit)
    result = steps.compute({"dataset": "higgs", "rows": 5000, "steps": 3}, data=data_dir)
    assert set(result) == set(strengths.FIGURES)
    assert (fitted[0].n_iter_, fitted[0].n_rows_) == (3, 5000)
