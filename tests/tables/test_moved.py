"""Cells that change, in tables of every type: what is written is what is read again."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psilonnet.tables import read_columns, with_cells

MOMENTS = [dt.datetime(2020, 1, 1, 12, 30, 0, 1500), None, dt.datetime(1969, 5, 2, 3)]
SPANS = [dt.timedelta(hours=5), dt.timedelta(days=-2), None]
ZONE = pd.Series(pd.to_datetime(["2020-01-01", None, "1969-05-02"])).dt.tz_localize("Europe/Rome")
TABLES = {
    "pandas": pd.DataFrame(
        {
            "float": [1.5, np.nan, -3.0],
            "int": [1, 2, 3],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "single": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "object": pd.Series([Decimal("1.5"), 2, None], dtype=object),
            "word": ["a", None, "c"],
            "flag": [True, False, True],
            "flag?": pd.Series([True, None, False], dtype=object),
            "flag or NA": pd.array([None, True, False], dtype="boolean"),
            "flag or null": pd.Series([None, True, False], dtype=pd.ArrowDtype(pa.bool_())),
            "objects or NA": pd.Series([pd.NA, True, False], dtype=object),
            "level": pd.Categorical([7, 8, None]),
            "moment": pd.to_datetime(MOMENTS),
            "zone": ZONE,
            "span": pd.to_timedelta(SPANS),
        }
    ),
    "polars": pl.DataFrame(
        {
            "float": [1.5, None, -3.0],
            "int": [1, 2, 3],
            "decimal": pl.Series(["1.50", "2.25", None]).cast(pl.Decimal(10, 2)),
            "word": ["a", None, "c"],
            "flag": [True, False, None],
            "level": pl.Series(["u", "v", None], dtype=pl.Categorical),
            "enum": pl.Series(["u", "v", None], dtype=pl.Enum(["u", "v"])),
            "moment": MOMENTS,
            "date": [dt.date(2020, 1, 1), None, dt.date(1969, 5, 2)],
            "span": SPANS,
        }
    ),
    "arrow": pa.table(
        {
            "float": [1.5, None, -3.0],
            "int": [1, 2, 3],
            "word": ["a", None, "c"],
            "flag": [True, False, None],
            "level": pa.array(["u", "v", None]).dictionary_encode(),
            "moment": pa.array(MOMENTS, pa.timestamp("us")),
            "date": pa.array([dt.date(2020, 1, 1), None, dt.date(1969, 5, 2)]),
            "span": pa.array(SPANS, pa.duration("ms")),
        }
    ),
    "floats": np.array([[1.5, np.nan], [2.0, 3.0], [4.0, 5.0]]),
    "ints": np.array([[1, 2], [3, 4], [5, 6]]),
    "objects": np.array(
        [[1, "a", MOMENTS[0]], [None, "b", MOMENTS[2]], [2.5, None, MOMENTS[0]]], dtype=object
    ),
    "dates": np.array([["2020-01-01"], ["1969-05-02"], ["NaT"]], dtype="datetime64[D]"),
}


def shifted(column):
    """Return a column all of whose cells have changed, but for the missing ones."""
    if column.kind == "category":
        there = [word for word in column.values if word is not None]
        turn = dict(zip(there, [*there[1:], *there[:1]], strict=True))
        return replace(column, values=np.array([turn.get(w) for w in column.values], dtype=object))
    step = 0.1 if column.kind == "number" else 86_401_234 / 86_400_000
    return replace(column, values=column.values + step)


@pytest.mark.parametrize("kind", TABLES)
def test_changed_cells_are_read_as_what_they_are_to_be(kind):
    table = TABLES[kind]
    before = read_columns(table)
    after = [shifted(column) for column in before]
    rows = np.array([2, 0])
    moved = with_cells(table, rows, before, after)
    assert type(moved) is type(table)
    for found, wanted in zip(read_columns(moved), after, strict=True):
        assert found.kind == wanted.kind, found.name
        if found.kind == "category":
            assert list(found.values) == list(wanted.values[rows]), found.name
        else:
            np.testing.assert_allclose(found.values, wanted.values[rows], rtol=1e-15, atol=1e-12)


@pytest.mark.parametrize("kind", TABLES)
def test_cells_that_stay_are_the_very_same(kind):
    table = TABLES[kind]
    columns = read_columns(table)
    kept = with_cells(table, np.array([1, 2]), columns, columns)
    if isinstance(table, pd.DataFrame):
        pd.testing.assert_frame_equal(kept, table.iloc[[1, 2]])
    elif isinstance(table, pl.DataFrame):
        assert kept.equals(table[[1, 2]])
        assert kept.schema == table.schema
    elif isinstance(table, pa.Table):
        assert kept.equals(table.take([1, 2]))
    else:
        for a, b in zip(read_columns(kept), columns, strict=True):
            np.testing.assert_array_equal(a.values, b.values[[1, 2]])


def test_no_rows_are_a_table_of_no_rows():
    for table in TABLES.values():
        columns = read_columns(table)
        assert len(with_cells(table, np.array([], dtype=int), columns, columns)) == 0


AUTUMN, SPRING = dt.datetime(2024, 10, 27), dt.datetime(2024, 3, 31)  # an hour twice, an hour less
ROME = ZoneInfo("Europe/Rome")
UTC_STAMPS = [
    day.replace(hour=h, tzinfo=dt.timezone.utc) for day in (AUTUMN, SPRING) for h in (0, 1)
]
SECONDS = pd.Series(pd.to_datetime(["2024-01-15 12:00:07", "1969-05-02 03:00:00"]))
MOVING = {
    "polars": pl.DataFrame({"t": pl.Series(UTC_STAMPS).dt.convert_time_zone("Europe/Rome")}),
    "polars ns": pl.DataFrame({"t": pl.Series([1, 10**18 + 1]).cast(pl.Datetime("ns"))}),
    "arrow": pa.table({"t": pa.array(UTC_STAMPS, pa.timestamp("us", "Europe/Rome"))}),
    "objects": np.array([[t.astimezone(ROME)] for t in UTC_STAMPS], dtype=object),
    "object column": pd.DataFrame({"t": [t.astimezone(ROME) for t in UTC_STAMPS]}, dtype=object),
    "dates": np.array([[dt.date(2020, 1, 1)], [dt.date(1969, 5, 2)]], dtype=object),
    "pandas s": pd.DataFrame({"t": SECONDS.astype("datetime64[s]")}),
    "spans s": pd.DataFrame({"t": (SECONDS - SECONDS[1]).astype("timedelta64[s]")}),
    "pyarrow s": pd.DataFrame({"t": SECONDS.astype(pd.ArrowDtype(pa.timestamp("s", "UTC")))}),
    "arrow s": pa.table({"t": pa.array(SECONDS.to_list(), pa.timestamp("s"))}),
    "arrow spans s": pa.table({"t": pa.array([5, 7], pa.duration("s"))}),
}


@pytest.mark.parametrize("kind", MOVING)
@pytest.mark.parametrize("by", [-5_400_000, -500, 1, 500, 1_800_000])
def test_times_move_by_what_they_are_to_whatever_their_zone_and_unit(kind, by):
    table = MOVING[kind]
    (before,) = read_columns(table)
    after = replace(before, values=before.values + by / 86_400_000)
    moved = with_cells(table, np.arange(len(before.values)), [before], [after])
    (found,) = read_columns(moved)
    np.testing.assert_array_equal(np.rint((found.values - before.values) * 86_400_000), by)
    if kind == "polars ns":
        assert (moved["t"].cast(pl.Int64) - table["t"].cast(pl.Int64) == by * 10**6).all()
    if kind == "pyarrow s":
        assert moved["t"].dtype == pd.ArrowDtype(pa.timestamp("ms", "UTC"))
