import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from psilonnet import PSiLONClassifier
from psilonnet.tables import LossWarning, fit_encoder, read_columns


def losses(frame, weight=None):
    """Return what fitting an encoder says."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows = len(next(iter(frame.values()))) if isinstance(frame, dict) else len(frame)
        table = pd.DataFrame(frame) if isinstance(frame, dict) else frame
        fit_encoder(read_columns(table), np.ones(rows) if weight is None else weight)
    assert all(issubclass(one.category, LossWarning) for one in said)
    return [str(one.message) for one in said]


AMOUNTS = [f"${1000 + 7 * k:,}.50" for k in range(200)]
DATES = [f"{1 + k % 28}/{1 + k % 12}/2023" for k in range(200)]


def test_text_that_would_be_numbers_or_dates_is_told_once_with_the_remedy():
    said = losses(
        {
            "price": AMOUNTS,
            "rate": [f"{k % 40} %" for k in range(200)],
            "paid": [f"{k // 10} {k % 10}00,50 EUR" for k in range(200)],
            "sold": DATES,
            "city": ["Oslo", "Rome"] * 100,
        }
    )
    assert len(said) == 1
    for column in (r"'price' (such as '$", "'rate' (such as '", "'paid' (such as '", "'sold' ("):
        assert column in said[0]
    assert "'city'" not in said[0]
    assert "psilonnet.tables.read_text" in said[0]


def test_text_is_told_even_if_its_levels_are_few_unless_it_is_declared():
    words = ["10%", "20%", "30%", "n/a"] * 50
    assert len(losses({"rate": words})) == 1
    assert losses({"rate": pd.Categorical(words)}) == []
    assert losses(pl.DataFrame({"rate": pl.Series(words, dtype=pl.Enum(sorted(set(words))))})) == []


@pytest.mark.parametrize(
    "words",
    [
        ["00123", "12345", "54321"],
        ["1", "2", "3"],
        ["3.9", "3.10", "3.11"],
        ["12:30", "08:15"],
        ["Oslo", "$5"],
    ],
)
def test_levels_that_are_kept_are_not_told(words):
    assert losses({"a": words * 60}) == []


def test_rows_that_are_mostly_rare_are_told_with_their_share():
    words = [f"street {k}" for k in range(120)] * 2 + ["none"] * 160
    said = losses({"a": words, "b": ["x", "y"] * 200})
    assert len(said) == 1
    assert "count as one level: 'a' (60% of the rows)" in said[0]
    assert losses({"a": words + ["none"] * 160}) == []
    # Levels beyond the most frequent fifty are rare as well.
    many = [f"level {k % 150}" for k in range(3000)]
    assert "'a' (67% of the rows)" in losses({"a": many})[0]
    weight = np.where(np.array([int(word.split()[1]) for word in many]) < 50, 9.0, 1.0)
    assert losses({"a": many}, weight) == []


def test_plain_numbers_as_text_are_told_when_they_are_lost():
    ages = [str(20 + k % 200 / 4) for k in range(800)]
    assert losses({"age": [age for age in ages if float(age) < 30]}) == []
    assert "into numbers or dates if they hold any" in losses({"age": ages})[0]


def test_missing_rows_do_not_hide_an_identifier():
    names = [f"customer {k}" for k in range(60)] + [None] * 140
    assert "like an identifier: 'id'" in losses({"id": names})[0]
    assert "identifier" not in losses({"id": names[50:]})[0]  # ten are too few to tell


def test_many_columns_are_one_warning():
    said = losses({f"c{k}": [f"name {k} {row}" for row in range(40)] for k in range(8)})
    assert len(said) == 1
    assert "'c0', 'c1', 'c2', 'c3', 'c4', and 3 more" in said[0]


def test_numbers_that_hardly_differ_are_told():
    nanoseconds = 1_700_000_000_000_000_000 + 1000 * np.arange(50)
    assert "taken as constant and left out: 'at'" in losses({"at": nanoseconds})[0]
    assert losses({"noise": [0.1 + 0.2, 0.3] * 20, "same": [5.0] * 40}) == []


def test_fit_tells_once():
    frame = pd.DataFrame({"price": AMOUNTS, "x": np.arange(200.0)})
    model = PSiLONClassifier(width=4, max_steps=2, reg_strength=1e-3, verbose=False)
    with pytest.warns(LossWarning, match="amounts, percentages or dates") as said:
        model.fit(frame, np.arange(200) % 2)
    assert len(said) == 1
    assert said[0].filename == __file__
