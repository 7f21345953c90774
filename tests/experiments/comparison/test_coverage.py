"""Coverage on a small scale: what is attacked, and what survives."""

import numpy as np
import pytest

from experiments.comparison import coverage
from experiments.data import load_table
from experiments.frames import Part, fit_ours, make_frames
from psilonnet.tables import read_columns

QUICK = {"width": 8, "depth": 1, "max_steps": 60, "cv": 2, "designs": coverage.SETTINGS["designs"]}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("compas_two_years", coverage.OURS),
        ("cpu_act", coverage.OURS),
        ("cpu_act", coverage.OUR_QUANTILES),
    ],
)
def test_delta_makes_up_for_what_an_attack_reads(name, model, data_dir, monkeypatch):
    monkeypatch.setattr(coverage, "ROWS", 300)
    monkeypatch.setattr(coverage, "SETTINGS", QUICK)
    found = coverage.compute({"dataset": name, "seed": 0, "model": model}, data=data_dir)
    assert set(found) == set(coverage.FIGURES)
    for size in coverage.SIZES:
        assert found[f"attacked_{size}"] <= found["coverage"] <= found[f"delta_coverage_{size}"]
        assert found["width"] < found[f"delta_width_{size}"]


def test_attack_moves_numbers_only_and_no_farther_than_it_may(data_dir):
    table = load_table("compas_two_years", data_dir)
    parts = make_frames(table, 0)
    model = fit_ours(table.task, parts, "user", **QUICK)
    test = Part(parts["test"].x[:200], parts["test"].y[:200])
    read = coverage.attacked(model, test.x, test.y, 0.05)
    before, after = (model.encoder_.encode(read_columns(x)) for x in (test.x, read))
    numbers = model.encoder_.holds_numbers
    assert np.abs(after - before).max() <= 0.05
    assert np.abs(after - before)[:, numbers].max() > 0.049
    np.testing.assert_array_equal(after[:, ~numbers], before[:, ~numbers])
    away = np.where(test.y > 0, -1, 1)
    change = model.decision_function(read) - model.decision_function(test.x)
    assert (away * change >= -1e-12).all()
    assert (away * change).mean() > 0


@pytest.mark.parametrize("model", [coverage.MAPIE, coverage.CQR, coverage.CATBOOST])
@pytest.mark.parametrize("name", ["compas_two_years", "cpu_act"])
def test_rivals_say_where_the_truth_is(model, name, data_dir, monkeypatch):
    if name == "compas_two_years" and model in coverage.ONLY_NUMBERS:
        pytest.skip("quantiles are of numbers only")
    package = "catboost" if model == coverage.CATBOOST else "mapie"
    pytest.importorskip(package, reason="an environment of its own: .ci/long coverage")
    monkeypatch.setattr(coverage, "TREES", 20)
    found = coverage.compute({"dataset": name, "seed": 0, "model": model}, data=data_dir)
    assert 0.75 < found["coverage"] < 1
    assert found["width"] > 0


def test_table_has_a_line_for_each_table_and_model():
    cells = [
        {"dataset": name, "seed": seed, "model": model}
        for name, model in [("cpu_act", coverage.OURS), ("cpu_act", coverage.MAPIE)]
        for seed in (0, 1)
    ]

    class Results(dict):
        def __getitem__(self, cell):
            own = {"coverage": 0.9 + 0.01 * cell["seed"], "width": 1.0}
            rest = dict.fromkeys(coverage.FIGURES, 0.5)
            return {**rest, **own} if cell["model"] == coverage.OURS else own

    lines = coverage.means_of(cells, Results())
    assert [line["model"] for line in lines] == [coverage.OURS, coverage.MAPIE]
    assert [line["coverage"] for line in lines] == [0.905, 0.905]
    assert lines[1]["score"] == ""
    assert lines[0].keys() == lines[1].keys()
