"""Learning curves: what is counted, and what is drawn."""

import pytest

from experiments.comparison import learning_curves
from experiments.data import load_table
from experiments.frames import make_frames


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
        parts = make_frames(table, 0, n_train=max(learning_curves.SIZES))
        assert len(parts["test"].y) > 2000
