import datetime as dt
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psilonnet.deploy.predictor import _days
from psilonnet.tables import DAY, read_columns, with_cells

DATA = {
    "number": [1, 2, None],
    "word": ["x", None, "y"],
    "flag": [True, None, False],
    "moment": [dt.datetime(2020, 1, 1), None, dt.datetime(2020, 1, 2, 12)],
    "day": [dt.date(2020, 1, 1), None, dt.date(2020, 1, 2)],
}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_all_frames_give_the_same_columns(make):
    columns = {column.name: column for column in read_columns(make(DATA))}
    assert [c.kind for c in columns.values()] == ["number", "category", "category", "time", "time"]
    np.testing.assert_array_equal(columns["number"].values, [1, 2, np.nan])
    assert columns["word"].values.tolist() == ["x", None, "y"]
    assert columns["flag"].values.tolist() == ["True", None, "False"]
    np.testing.assert_allclose(columns["moment"].values, [18262, np.nan, 18263.5])
    np.testing.assert_allclose(columns["day"].values, [18262, np.nan, 18263])


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_all_frames_and_arrays_cut_durations_downward(make):
    """Durations below 0 were cut upward in frames, and downward in arrays and exports."""
    spans = [dt.timedelta(microseconds=k) for k in (-1500, -999, 999, 1500)]
    cells = np.array(spans, dtype="timedelta64[us]").reshape(-1, 1)
    for given in (make({"span": [*spans, None]}), cells, cells.astype(object)):
        (column,) = read_columns(given)
        assert column.kind == "duration"
        expected = [-2, -1, 0, 1, np.nan][: len(column.values)]
        np.testing.assert_allclose(column.values * DAY, expected)


def test_pandas_columns_of_other_types():
    frame = pd.DataFrame(
        {
            "levels": pd.Categorical([1, 2, None]),
            "words": pd.Categorical(["b", "a", "b"], categories=["a", "b", "c"]),
            "zone": pd.to_datetime(["2020-01-01", None, "2020-01-02"], utc=True),
            "span": pd.to_timedelta([1, None, 3], unit="D"),
            "mixed": pd.Series([1, "a", None], dtype=object),
            "decimal": pd.Series([Decimal("1.5"), None, Decimal("2")], dtype=object),
            "small": np.array([1, 2, 3], dtype=np.uint8),
        }
    )
    columns = {column.name: column for column in read_columns(frame)}
    assert columns["levels"].values.tolist() == ["1", "2", None]
    assert columns["words"].values.tolist() == ["b", "a", "b"]
    np.testing.assert_allclose(columns["zone"].values, [18262, np.nan, 18263])
    np.testing.assert_allclose(columns["span"].values, [1, np.nan, 3])
    assert columns["mixed"].values.tolist() == ["1", "a", None]
    np.testing.assert_array_equal(columns["decimal"].values, [1.5, np.nan, 2])
    assert columns["small"].values.dtype == float


def test_masked_cells_are_missing():
    masked = np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    columns = read_columns(masked)
    np.testing.assert_array_equal([column.values for column in columns], [[1, 3], [np.nan, 4]])
    assert {type(column.values) for column in columns} == {np.ndarray}
    moments = np.array([["1970-01-03"], ["2020-01-01"]], dtype="datetime64[ns]")
    (column,) = read_columns(np.ma.masked_array(moments, mask=[[False], [True]]))
    assert column.kind == "time"
    np.testing.assert_array_equal(column.values, [2, np.nan])


def test_polars_categories_and_enums():
    frame = pl.DataFrame(
        {
            "cat": pl.Series(["a", None, "b"], dtype=pl.Categorical),
            "enum": pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
        }
    )
    assert [c.values.tolist() for c in read_columns(frame)] == [["a", None, "b"], ["a", "b", "a"]]


def test_arrays_are_read_column_by_column():
    numbers, words, times = read_columns(
        np.array([[1, "a", dt.date(2020, 1, 1)], [2.5, np.nan, None]], dtype=object)
    )
    assert (numbers.kind, words.kind, times.kind) == ("number", "category", "time")
    assert words.values.tolist() == ["a", None]
    assert [c.name for c in read_columns(np.zeros((2, 3)))] == ["x0", "x1", "x2"]
    assert read_columns(np.array([["a"], ["b"]]))[0].kind == "category"
    assert read_columns(np.array([[True], [False]]))[0].values.tolist() == ["True", "False"]


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.array([[np.inf]]), ValueError, r"must be finite .* 'x0' contains infinity in row 0"),
        (np.array([[{"a": 1}]], dtype=object), TypeError, r"'x0' holds {'a': 1} of type dict"),
        (np.array([[1j]], dtype=object), ValueError, "Complex data not supported"),
        (
            np.array(
                [[dt.datetime(2020, 1, 1)], [dt.datetime(2020, 1, 1, tzinfo=dt.timezone.utc)]]
            ),
            ValueError,
            "time zone, or none. Column 'x0' holds 1 with one and 1 without",
        ),
        (pl.DataFrame({"a": [[1, 2]]}), TypeError, r"'a' holds List"),
    ],
)
def test_strange_columns_are_named(table, error, words):
    with pytest.raises(error, match=words):
        read_columns(table)


def test_moments_in_the_last_hours_of_python_are_read_in_every_zone():
    west = dt.timezone(dt.timedelta(hours=-5))
    last = dt.datetime(9999, 12, 31, 23, tzinfo=west)
    cells = np.array([last, last.replace(tzinfo=dt.timezone.utc)], dtype=object)
    (column,) = read_columns(cells[:, None])
    days = np.datetime64("9999-12-31") - np.datetime64("1970-01-01")
    np.testing.assert_allclose(column.values, days.astype(int) + np.array([28, 23]) / 24)
    np.testing.assert_array_equal(_days("x0", cells), column.values)  # of the exported predictor
    back = replace(column, values=column.values - 1 / 24)
    moved = with_cells(cells[:, None], np.array([0, 1]), [column], [back])
    assert moved[:, 0].tolist() == [last, last.replace(hour=22, tzinfo=dt.timezone.utc)]
