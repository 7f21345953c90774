"""A table of few distinct rows."""

from experiments.studies import repeated_rows


def test_a_table_of_few_distinct_rows_is_fitted_and_judged(monkeypatch):
    quick = {**repeated_rows.SETTINGS, "max_steps": 60, "width": 16, "cv": 2}
    monkeypatch.setattr(repeated_rows, "SETTINGS", quick)
    result = repeated_rows.compute({"columns": "two", "seed": 0}, data="none")
    assert set(result) == set(repeated_rows.FIGURES)
    assert 0.5 < result["accuracy"] < 0.95
