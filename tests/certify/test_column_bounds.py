"""What is said about the bounds of columns."""

import numpy as np
import polars as pl
import pytest

from psilonnet.certify.column_bounds import ColumnBounds, _raised
from psilonnet.tables import fit_encoder, read_columns


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1_313_400.2, "1,314,000"),  # rounded up: 1,313,000 would be no limit
        (1_313_000.0, "1,313,000"),
        (12.341, "12.35"),
        (0.2, "0.2"),
        (0.0, "0"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
    ],
)
def test_a_limit_in_words_is_a_limit_and_has_no_power_of_ten(value, words):
    assert _raised(value) == words


def test_words_name_the_columns_with_the_largest_moves_first():
    table = pl.DataFrame({"rooms": [1.0, 2.0, 4.0], "area": [50.0, 80.0, 90.0]})
    bounds = ColumnBounds(1.0, np.array([30_001.0, 500.0]), np.array([60_002.0, 90_003.0]))
    lines = bounds.in_words(fit_encoder(read_columns(table), np.ones(3)), "the price moves")
    assert "the price moves by at most 150,100." in lines
    assert lines[-2] == "  area: at most 500 for one unit, 90,010 for one standard deviation"
    assert lines[-1] == "  rooms: at most 30,010 for one unit, 60,010 for one standard deviation"
