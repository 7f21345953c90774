"""Strengths and steps: settings reach the estimator, and are compared by ratios."""

import pytest

from experiments.studies import steps, strengths


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
