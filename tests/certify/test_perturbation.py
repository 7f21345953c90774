"""What may move, in the units of the table, and what is refused."""

import datetime as dt
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certify.fitted_models import QUICK, table
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Perturbation
from psilonnet.deploy.predictor import Predictor
from psilonnet.tables import DAY, Column, NumberCode, TableEncoder, read_columns


def exported(model, folder):
    model.export_numpy(folder)
    return Predictor(folder)


def test_deltas_in_own_units_move_only_their_columns():
    frame, y = table()
    model = PSiLONRegressor(**QUICK).fit(frame, y)
    rng = np.random.default_rng(0)
    low, high = model.output_range(frame, {"a": 5.0, "day": dt.timedelta(days=30)})
    for _ in range(20):
        moved = frame.assign(
            a=frame.a + rng.uniform(-5, 5, len(frame)),
            day=frame.day + pd.to_timedelta(rng.uniform(-30, 30, len(frame)), "D"),
        )
        after = model.predict(moved)
        assert ((low <= after) & (after <= high)).all()
    days = model.output_range(frame, {"a": 5.0, "day": 30})
    np.testing.assert_allclose(days[0], low)
    wide = model.output_range(frame, [5.0, 0.0, 0, 0, 30])
    np.testing.assert_allclose(wide[0], low)
    # A missing cell stays missing: moving b moves nothing there.
    holes = frame.b.isna().to_numpy()
    alone = model.output_range(frame, {"b": 1.0})
    assert (alone[1] - alone[0])[holes].max() < 1e-8
    assert (alone[1] - alone[0])[~holes].min() > 1e-4


@pytest.mark.filterwarnings("ignore:Most values of these columns")  # one level was never seen
@pytest.mark.parametrize("method", ["global", "local"])
@pytest.mark.parametrize("pieces", [1, 3])
def test_categories_may_take_any_level(method, pieces):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "designs": [Design(pieces=pieces)]}).fit(frame, y)
    low, high = model.output_range(frame, {"city": "any", "flag": "any"}, method=method)
    for city in ("x", "y", "z", "never seen"):
        for flag in (True, False):
            after = model.predict(frame.assign(city=city, flag=flag))
            assert ((low <= after) & (after <= high)).all()
    classifier = PSiLONClassifier(**{**QUICK, "designs": [Design(pieces=pieces)]}).fit(frame, y > 0)
    stays = classifier.is_robust(frame, {"city": "any"}, method=method)
    assert stays.dtype == bool
    before = classifier.predict(frame)
    for city in ("x", "y", "z"):
        assert (classifier.predict(frame.assign(city=city)) == before)[stays].all()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_amounts_in_a_frame_go_by_its_names(make):
    columns = [Column(name, "number", np.arange(3.0)) for name in "ab"]
    code = NumberCode(1.0, 1.0, 0.0, 2.0, False)
    encoder = TableEncoder(("a", "b"), ("number", "number"), (code, code))
    amounts = {"b": np.array([3.0, 4.0, 5.0]), "a": np.zeros(3)}
    for delta in (make(amounts), Perturbation(amounts=make(amounts))):
        radius = Perturbation.of(delta).box(encoder, columns, encoder.encode(columns)).radius
        np.testing.assert_allclose(radius, [[0, 3], [0, 4], [0, 5]])


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        ({"A": 1.0}, r"must be columns.*\['A'\]"),
        ({"a": -1.0}, r"'a' \(kind 'number'\) must be a number of at least 0\. Got -1.0"),
        ({"city": 1.0}, r"'city' \(kind 'category'\) must be 'any', or 0 .*\. Got 1.0"),
        ({"a": "any"}, r"Only a category can move in any way. Column 'a'"),
        ({"a": dt.timedelta(1)}, r"'a'.*Got datetime.timedelta"),
        ([1.0], r"one amount for each of the 5 columns.*Got \(1,\)"),
        ({"day": dt.timedelta(-1)}, r"timedelta of at least 0.*Got datetime.timedelta"),
        ({"day": np.timedelta64(1, "M")}, r"timedelta of at least 0.*Got np.timedelta64\(1,'M'\)"),
        ({"day": np.timedelta64("NaT")}, r"timedelta of at least 0.*Got .*NaT"),
        ("any", r"for one column: give a dict.*Got 'any'"),
        (np.nan, r"Got nan"),
    ],
)
def test_wrong_deltas_are_refused(delta, words):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 2}).fit(frame, y)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model.output_range(frame, delta)
    with pytest.raises(ValueError, match="'method' must be one of"):
        model.output_range(frame, 0.1, method="exact")


def test_a_series_of_amounts_is_read_by_name():
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 2}).fit(frame, y)
    amounts = {"b": 0.5, "a": 3.0}
    for low, expected in zip(
        model.output_range(frame, pd.Series(amounts)),
        model.output_range(frame, amounts),
        strict=True,
    ):
        np.testing.assert_array_equal(low, expected)


def test_times_may_move_by_less_than_they_are_cut_to():
    # All within a millisecond or two: a few microseconds can carry a moment into the next one.
    rng = np.random.default_rng(0)
    first = np.datetime64("2024-01-01T00:00:00.000000", "us")
    when = first + rng.integers(0, 3000, 200).astype("timedelta64[us]")
    frame = pd.DataFrame({"when": when, "wait": when - first})
    y = rng.normal(size=200) + (when - first).astype(float) / 1000
    model = PSiLONRegressor(**{**QUICK, "designs": [Design(columns="identity")]}).fit(frame, y)
    assert model.encoder_.kinds == ("time", "duration")
    step = np.timedelta64(50, "us")
    low, high = model.output_range(frame, {"when": step, "wait": step})
    moved = model.predict(frame + step)
    assert (model.predict(frame) != moved).any()
    assert (low <= moved).all()
    assert (moved <= high).all()


@pytest.mark.parametrize(
    "delta", [-1, float("nan"), dt.timedelta(days=1), np.timedelta64(1, "D"), [[0.1]], True]
)
def test_delta_for_all_columns_is_a_number_of_deviations(delta):
    frame, y = table()
    model = PSiLONRegressor(**QUICK).fit(frame, y)
    with pytest.raises(ValueError, match=r"number of standard deviations|one amount for each"):
        model.output_range(frame, delta)
    np.testing.assert_array_equal(
        model.output_range(frame, np.array(0.1)), model.output_range(frame, 0.1)
    )


@pytest.mark.parametrize("method", ["global", "local"])
def test_huge_delta_is_bounded_by_what_is_encoded(method):
    frame, y = table()
    low, high = PSiLONRegressor(**QUICK).fit(frame, y).output_range(frame, 1e308, method=method)
    assert np.isfinite([low, high]).all()
    assert (low < high).all()


def test_nanoseconds_of_a_timedelta_count(tmp_path):
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01")
    stamps = (start + pd.to_timedelta(rng.integers(0, 10**6, 100), "us")).astype("datetime64[ns]")
    frame = pd.DataFrame({"t": stamps})
    model = PSiLONRegressor(**QUICK).fit(frame, (frame.t - start).dt.total_seconds())
    row = pd.DataFrame({"t": pd.to_datetime(["2020-01-01 00:00:00.500999800"]).as_unit("ns")})
    delta = pd.Timedelta("500ns")
    after = model.predict(row.assign(t=row.t + delta))
    for proof in (model, exported(model, tmp_path)):
        low, high = proof.output_range(row, {"t": delta})
        assert low < high
        assert low <= after <= high


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize("method", ["global", "local"])
def test_shares_of_the_cell_and_amounts_of_each_row_are_kept(method):
    frame, y = table()
    model = PSiLONRegressor(**QUICK).fit(frame, y)
    own = np.random.default_rng(1).uniform(0, 5, len(frame))
    moves = Perturbation(relative={"a": 0.02}, amounts={"b": own}, levels=["city"])
    low, high = model.output_range(frame, moves, method=method)
    rng = np.random.default_rng(0)
    for city in ("x", "y", "z"):
        for _ in range(10):
            a, b = rng.choice([-1, 1], size=(2, len(frame))) * rng.uniform(0.9, 1, len(frame))
            moved = frame.assign(a=frame.a * (1 + 0.02 * a), b=frame.b + own * b, city=city)
            after = model.predict(moved)
            assert ((low <= after) & (after <= high)).all()
    share = model.output_range(frame, Perturbation(relative=0.02), method=method)
    named = Perturbation(relative={"a": 0.02, "b": 0.02})
    for one, other in zip(share, model.output_range(frame, named, method=method), strict=True):
        np.testing.assert_array_equal(one, other)
    everywhere = np.zeros((len(frame), 5))
    everywhere[:, 1] = own
    per_row = model.output_range(frame, everywhere)
    by_name = model.output_range(frame, Perturbation(amounts={"b": own}))
    np.testing.assert_array_equal(per_row[0], by_name[0])
    for kind in (list, pd.Series, np.float32):
        same = model.output_range(frame, {"b": kind(own)})
        np.testing.assert_allclose(same[0], by_name[0], rtol=1e-6)
    none = model.output_range(frame, Perturbation())
    np.testing.assert_allclose(none[0], none[1], atol=1e-8)


def durations(microseconds):
    """Return an encoder of one column of durations, and these as they are read."""
    cells = np.array(microseconds, dtype="timedelta64[us]")
    code = NumberCode(1 / DAY, 2 / DAY, -9 / DAY, 9 / DAY, False)
    encoder = TableEncoder(("span",), ("duration",), (code,))
    return encoder, read_columns(pd.DataFrame({"span": cells})), cells.astype(np.int64) / 1000


def test_shares_of_durations_are_of_what_they_were_before_they_were_cut():
    """A duration of 0.999 ms is read as 0, and a share of 0 let it move nowhere."""
    encoder, columns, cells = durations([999, 1999, -1, -1001, -1999, 40, -5500])
    encoded = encoder.encode(columns)
    for share in (0.001, 0.02, 0.5, 1.0):
        given = Perturbation(relative={"span": share})
        reach = given.box(encoder, columns, encoded).radius.numpy()
        ((low, high),) = given.ranges(encoder, columns).values()
        for step in np.linspace(-share, share, 9):
            _, moved, _ = durations(np.rint(1000 * cells * (1 + step)))
            assert (np.abs(encoder.encode(moved) - encoded) <= reach).all()
        # In milliseconds; a counterexample moves by what it says from the cell that was given.
        for end in (low, high):
            assert (np.abs(end - columns[0].values) * DAY <= share * np.abs(cells)).all()


def test_whole_numbers_that_are_no_floats_move_within_what_was_asked():
    """2^60 + 65 is read as 2^60, from where 300 more are 320 from the cell, or 256."""
    cells = 2**60 + np.arange(-400, 400, 13)
    code = NumberCode(2.0**60, 1000.0, 2.0**60, 2.0**60 + 1, False)
    encoder = TableEncoder(("a",), ("number",), (code,))
    columns = read_columns(pd.DataFrame({"a": cells}))
    for amount in (1, 100, 300, 700, 5000):
        ((low, high),) = Perturbation(amounts={"a": amount}).ranges(encoder, columns).values()
        for cell, *ends in zip(cells.tolist(), low, high, strict=True):
            # Where nothing moves a counterexample keeps the cell itself.
            assert all(float(cell) == end or abs(int(end) - cell) <= amount for end in ends)
        assert amount < 700 or (high > low).all()


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        (Perturbation(relative={"day": 0.02}), "numbers and durations.*'day' is of kind 'time'"),
        (Perturbation(relative={"city": 0.02}), "'city' is of kind 'category'"),
        (Perturbation(relative=-0.1), "at least 0: 0.02 for 2 %. Got -0.1"),
        (Perturbation(relative={"z": 0.1}), r"must be columns.*\['z'\]"),
        (Perturbation(levels=["a"]), "Only a category can move in any way. Column 'a'"),
        (Perturbation(levels=["z"]), r"must be columns.*\['z'\]"),
        (Perturbation(amounts=np.ones((3, 5))), r"each of the 150 rows. Got \(3, 5\)"),
        ({"a": np.ones(149)}, "one amount for each row. Got 149 for column 'a' of 150 rows"),
        ({"a": ["any"] * 150}, "An amount of column 'a' must be a number .* {'a': 'any'}"),
        ([0.5, 0, "any", 0, 0], "column 'city' .* Got 'any', which is for a category in all rows"),
        (Perturbation(amounts={"city": "any"}), "'any', .* the 'levels' of a Perturbation"),
        (Perturbation(amounts=0.5), "'amounts' .* must be a dict .* Got 0.5; a number for all"),
        (Perturbation(amounts=None), "'amounts' of a Perturbation must be a dict .* Got None"),
        ({"a": 10**400}, r"column 'a' .* must be a number of at least 0\. Got 1000"),
        (10**400, "number of standard deviations, finite .* Got 1000"),
        (pd.Series([50, 0.5], index=["a", "a"]), r"must be unique.* more than once: \['a'\]"),
        (Perturbation(relative={1: 0.1, "1": 0.2}), r"must be unique.* more than once: \['1'\]"),
        (None, "number of standard deviations.* Got None"),
    ],
)
def test_wrong_perturbations_are_refused(moves, words):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 2}).fit(frame, y)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model.output_range(frame, moves)


@pytest.mark.parametrize("levels", ["city", None, 3])
def test_levels_are_a_list_of_names(levels):
    with pytest.raises(ValueError, match=f"must be a list of names of columns.* Got {levels!r}"):
        Perturbation(levels=levels)


def test_amounts_may_be_arrays_without_axes_and_are_checked_for_constant_columns():
    frame, y = table()
    frame = frame.assign(same=1.0)
    model = PSiLONRegressor(**{**QUICK, "max_steps": 2}).fit(frame, y)
    for given, wrapped in (
        ({"a": 0.5}, {"a": np.array(0.5)}),
        (Perturbation(relative=0.5), Perturbation(relative=np.array(0.5))),
        (Perturbation(relative={"a": 0.5}), Perturbation(relative={"a": np.array(0.5)})),
    ):
        np.testing.assert_array_equal(
            model.output_range(frame, wrapped), model.output_range(frame, given)
        )
    with pytest.raises(ValueError, match="Got 3 for column 'same' of 150 rows"):
        model.output_range(frame, {"same": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("size", [1e-9, 0.1, 3.0, 1e12])
def test_ranges_of_cells_are_rounded_to_the_inside(size):
    rng = np.random.default_rng(0)
    cells = size * rng.normal(size=400)
    code = NumberCode(0.3 * size, 0.7 * size, -size, size, False)
    encoder = TableEncoder(("a",), ("number",), (code,))
    columns = [Column("a", "number", cells)]
    amounts = size * 10.0 ** rng.uniform(-18, 3, 400)
    ((low, high),) = Perturbation(amounts={"a": amounts}).ranges(encoder, columns).values()
    for cell, amount, *ends in zip(cells, amounts, low, high, strict=True):
        exact = [Fraction(cell) - Fraction(amount), Fraction(cell) + Fraction(amount)]
        assert exact[0] <= Fraction(ends[0]) <= Fraction(cell) <= Fraction(ends[1]) <= exact[1]
    given = Perturbation(standard_deviations=0.1, relative=0.02)
    ((low, high),) = given.ranges(encoder, columns).values()
    for cell, *ends in zip(cells, low, high, strict=True):
        amount = Fraction(0.1) * Fraction(code.scale) + Fraction(0.02) * abs(Fraction(cell))
        assert Fraction(cell) - amount <= Fraction(ends[0]) < Fraction(cell)
        assert Fraction(cell) < Fraction(ends[1]) <= Fraction(cell) + amount
