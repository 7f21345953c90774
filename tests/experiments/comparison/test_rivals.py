"""The comparison with other libraries: what is counted, and what is drawn."""

import csv
import json
import re
import sys
from collections import defaultdict
from statistics import fmean, median

from experiments import frames
from experiments.comparison import rivals
from experiments.comparison.rivals_report import figures, ranks, wins, write_report
from experiments.data import ALL, DEVELOPMENT
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
    said = write_report(lines(), figures(lines()), tmp_path)
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
    over = said["user_3_splits_over_CatBoost_of_means"]
    assert (over["median"], over["above 1.05"], over["largest"]) == (3.2, 3, 5.0)
    assert over["confirmation tables better"] == "0 of 0"


def test_an_earlier_recipe_is_beaten_or_not_beyond_the_noise_of_the_splits():
    def at(factors):
        ours = [x for x in lines() if x["model"] == "psilonnet"]
        return [
            {**x, "seed": str(k), "test_loss": str(factor * float(x["test_loss"]))}
            for k, factor in enumerate(factors)
            for x in ours
        ]

    def said(factors):
        return figures(at(factors), at([1.0] * 3))["earlier_recipe_tables_worse"]

    assert said([1.03, 1.03, 1.04]) == dict.fromkeys(MADE_UP, 1.033)
    assert said([1.3, 0.9, 0.9]) == "none"  # one split decides nothing
    assert said([1.01, 1.01, 1.01]) == "none"
    assert "earlier_recipe_tables_worse" not in figures(at([1.0, 1.0]), at([1.0] * 3))


def test_other_selections_are_compared_with_the_default():
    both = [{**x, "bound": "10"} for x in lines()]
    ours = [x for x in both if x["model"] == "psilonnet"]
    other = [
        {**x, "model": "provable", "test_loss": str(1.1 * float(x["test_loss"])), "bound": "5"}
        for x in ours
    ]
    said = figures(both, selections=other)
    assert said["provable_over_default"] == {"loss": 1.1, "bound": 0.5}
    assert said["provable_better_than_CatBoost"] == "2 of 3"


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


def test_our_estimator_is_one_of_the_rivals(data_dir, monkeypatch):
    for kind in ("PSiLONClassifier", "PSiLONRegressor"):
        estimator = getattr(frames, kind)
        quick = {"max_steps": 2, "width": 4}
        monkeypatch.setattr(
            frames, kind, lambda estimator=estimator, quick=quick, **k: estimator(**k, **quick)
        )
    for name in ("higgs", "bike_sharing_demand"):
        for protocol in ("paper", "user"):
            cell = {"dataset": name, "model": "psilonnet", "protocol": protocol, "seed": 0}
            result = rivals.compute(cell, data=data_dir)
            assert 0 < result["test_loss"] < 10
            assert result["bound"] > 0
            assert result["provable"]["bound"] <= result["accurate"]["bound"] * (1 + 1e-9)


def test_front_page_tells_the_ranks_of_the_results(repo):
    ours = ("psilonnet", "CatBoost", "LightGBM", "RealMLP")
    losses = defaultdict(lambda: defaultdict(list))
    with (repo / "experiments" / "results" / "rivals.csv").open() as file:
        for line in csv.DictReader(file):
            if line["protocol"] == "user" and line["model"] in ours:
                losses[line["dataset"]][line["model"]].append(float(line["test_loss"]))
    means = {name: {m: fmean(row[m]) for m in ours} for name, row in losses.items()}
    assert len(means) == 29
    assert all(len(own) == 3 for row in losses.values() for own in row.values())
    places = [{m: sorted(row.values()).index(row[m]) + 1 for m in ours} for row in means.values()]
    shares = [{m: row[m] / row["CatBoost"] for m in ours} for row in means.values()]
    ahead = [{m: row["psilonnet"] < row[m] for m in ours} for row in means.values()]
    found = {
        "average rank": [f"{fmean(row[m] for row in places):.2f}" for m in ours],
        "loss over": [f"{median(row[m] for row in shares):.3f}" for m in ours],
        "tables on which": [str(sum(row[m] for row in ahead)) for m in ours],
    }
    page = (repo / "README.md").read_text()
    for begin, figures_found in found.items():
        line = re.search(rf"\n\| {begin}[^|]*\|(.*)\|\n", page)[1]
        told = [cell.strip() for cell in line.split("|")]
        pairs = zip(figures_found, told, strict=True)
        assert all(own == cell for own, cell in pairs if cell not in ("", "1"))
