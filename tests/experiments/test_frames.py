"""Tables as frames: parts of one split, whatever the number of training rows."""

import numpy as np
import pytest

from experiments.data import load_table
from experiments.frames import make_frames


def test_fewer_rows_leave_the_test_rows_alone(data_dir):
    table = load_table("house_sales", data_dir)
    few, many = (make_frames(table, 0, n_train=10_000, use=rows) for rows in (250, 10_000))
    assert len(few["train"].x) == 250
    assert few["train"].x.equals(many["train"].x[:250])
    assert few["test"].x.equals(many["test"].x)
    assert (few["test"].y == many["test"].y).all()  # in one unit
    quartiles = np.quantile(many["train"].y, [0.25, 0.75])
    assert np.diff(quartiles) == pytest.approx(2)
