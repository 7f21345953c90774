"""A hundred rows: every setting is one of our estimators'."""

import pytest

from experiments.studies import small_tables


@pytest.mark.parametrize("setting", small_tables.SETTINGS)
def test_a_hundred_rows_are_fitted_with_each_setting(setting, data_dir, monkeypatch):
    settings = {**small_tables.SETTINGS[setting], "max_steps": 20, "width": 8, "depth": 1}
    monkeypatch.setitem(small_tables.SETTINGS, setting, settings)
    cell = {"dataset": "higgs", "setting": setting, "seed": 0}
    result = small_tables.compute(cell, data=data_dir)
    assert 0.5 < result["valid_loss"] < 2
    assert result["bound"] > 0
