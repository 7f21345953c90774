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


@pytest.mark.parametrize("n", [200, 1200])
def test_whole_numbers_that_are_one_float_are_told(n):
    large = 2**62 + np.arange(n)
    for cells in (
        large,
        large.astype("uint64"),
        pd.array(large, dtype="Int64"),
        large.astype(object),
    ):
        assert "taken as constant and left out: 'a'" in losses(pd.DataFrame({"a": cells}))[0]
    assert losses({"a": np.full(n, 2**62)}) == losses({"a": 2**62 + 10**9 * np.arange(n)}) == []


def test_times_that_are_one_millisecond_are_told():
    spans = pd.to_timedelta(np.arange(300) % 900, "us")
    moments = pd.Timestamp("2024-01-01") + spans
    frame = pd.DataFrame({"span": spans, "at": moments, "zone": moments.tz_localize("UTC")})
    cells = frame[["span", "at"]].astype(object)
    for table in (frame, pl.from_pandas(frame), cells):
        (said,) = losses(table)
        assert said.startswith("Times and durations are cut to milliseconds")
        assert all(repr(str(name)) in said for name in table.columns)
    assert losses({"span": 10 * spans}) == []
    assert losses({"same": [pd.Timedelta(300, "us")] * 40}) == []


def test_words_among_numbers_are_counted():
    numbers = [k % 8 / 2 for k in range(199)]
    for word in ("?", ""):
        (said,) = losses({"a": pd.Series([*numbers, word, None], dtype=object)})
        assert f"'a' (1 of 200 cells, such as {word!r})" in said
        assert "errors='coerce'" in said
    mostly_words = ["x", "y", 1] * 60
    assert losses({"a": mostly_words, "b": pd.Categorical([1, 2, "z"] * 60)}) == []


def test_equal_rows_that_were_merged_are_counted():
    frame = pd.DataFrame({"m": [f"l{k % 40}" for k in range(1200)]})
    frame.loc[:7, "m"] = "few"  # 8 rows of 1,200 are not rare
    model = PSiLONClassifier(width=4, max_steps=2, reg_strength=1e-3, verbose=False)
    for table in (frame, frame.assign(x=np.arange(1200.0))):
        for weight in (None, np.full(1200, 0.1)):
            model.fit(table, np.arange(1200) % 40 % 2, sample_weight=weight)
            assert "few" in model.encoder_.codes[0].levels


def test_fit_tells_once():
    frame = pd.DataFrame({"price": AMOUNTS, "x": np.arange(200.0)})
    model = PSiLONClassifier(width=4, max_steps=2, reg_strength=1e-3, verbose=False)
    with pytest.warns(LossWarning, match="amounts, percentages or dates") as said:
        model.fit(frame, np.arange(200) % 2)
    assert len(said) == 1
    assert said[0].filename == __file__


def test_numbers_too_small_for_a_scale_are_told():
    numbers = np.linspace(1, 2, 40)
    assert losses({"a": 1e-270 * numbers, "b": np.full(40, 1e-290), "c": np.zeros(40)}) == []
    for size in (1e-285, 5e-323):
        (said,) = losses({"a": size * numbers})
        assert (
            "standard deviation is at most 1e-280 are taken as constant and left out: 'a'" in said
        )
