"""What accuracy costs: points are measured, averaged and drawn."""

import pytest

from experiments.comparison import costs


def test_costs_are_measured_and_drawn(tmp_path, data_dir, monkeypatch):
    monkeypatch.setattr(costs, "BUDGETS", {"psilonnet": {"max_steps": 2, "width": 4}})
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
