"""Tables of all kinds are read alike, and what cannot be read is named."""

import datetime as dt
import tracemalloc
import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from estimators.messy import QUICK, SMALL, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators.reading import check_groups, check_weights, codes_of
from psilonnet.tables import LossWarning, OutOfRangeWarning


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames_give_the_same_model(make, fitted):
    frame, labels, _ = messy()
    other = PSiLONClassifier(**SMALL).fit(make(frame), labels)
    np.testing.assert_array_equal(other.predict_proba(make(frame)), fitted[0].predict_proba(frame))
    assert other.feature_names_in_.tolist() == list(frame.columns)


def test_object_arrays_and_lists_give_the_same_model():
    frame, labels, _ = messy()
    frame = frame[["age", "city", "member"]]
    table = frame.astype(object).to_numpy()
    array = PSiLONClassifier(**QUICK).fit(table, labels).predict_proba(table)
    listed = PSiLONClassifier(**QUICK).fit(table.tolist(), labels.tolist()).predict_proba(table)
    np.testing.assert_array_equal(array, listed)
    np.testing.assert_array_equal(
        array, PSiLONClassifier(**QUICK).fit(frame, labels).predict_proba(frame)
    )


def test_columns_may_be_called_like_methods_of_frames():
    x = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(x, columns=["collect", "column_names"])
    model = PSiLONRegressor(**QUICK).fit(frame, x[:, 0])
    np.testing.assert_array_equal(model.predict(frame), model.predict(pl.DataFrame(frame)))


def test_far_rows_warn_once(fitted):
    frame, _, _ = messy()
    with pytest.warns(OutOfRangeWarning, match=r"'age' \(1 rows\)") as caught:
        fitted[0].predict(frame.assign(age=[4000.0] + [40.0] * 199))
    assert len(caught) == 1


def test_new_levels_and_new_holes_are_predicted(fitted):
    frame, _, _ = messy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame["city"] = "Atlantis"
        frame["grade"] = None
        frame["joined"] = pd.NaT
        with pytest.warns(LossWarning, match=r"not among the levels of fit.*'Atlantis'"):
            assert np.isfinite(fitted[0].predict_proba(frame)).all()


def test_names_that_are_not_words_are_checked_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)))  # names 0, 1 and 2
    model = PSiLONRegressor(**QUICK).fit(frame, frame[0])
    expected = model.predict(frame)
    assert (model.predict(frame.to_numpy()) == expected).all()
    for other in (frame[[2, 1, 0]], frame.rename(columns={0: 7})):
        with pytest.raises(ValueError, match=r"names and the order of fit, \['0', '1', '2'\]"):
            model.predict(other)
    model = PSiLONRegressor(**QUICK).fit(frame.to_numpy(), frame[0])
    assert (model.predict(frame) == expected).all()


def test_frames_of_narwhals_are_read_by_name():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["a", "b"])
    model = PSiLONRegressor(**QUICK).fit(nw.from_native(frame), frame.a)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.predict(nw.from_native(frame)) == model.predict(frame)).all()
    with pytest.raises(ValueError, match="same order"):
        model.predict(nw.from_native(frame[["b", "a"]]))


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_names_of_an_array_in_another_order_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONRegressor(**QUICK).fit(x, x[:, 0])
    frame = pd.DataFrame(x, columns=["x0", "x1"])
    assert (model.predict(frame) == model.predict(x)).all()
    with pytest.raises(ValueError, match=r"order of fit, \['x0', 'x1'\]. Got \['x1', 'x0'\]"):
        model.predict(frame[["x1", "x0"]])


@pytest.mark.parametrize("names", [[np.nan, np.nan], [None, np.nan]])
def test_names_that_read_alike_are_refused(names):
    x = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match="names must be unique"):
        PSiLONRegressor(**QUICK).fit(pd.DataFrame(x, columns=names), x[:, 0])


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        ([1, 2, 1.0, 2.0], [0, 1, 0, 1]),
        ([2, "2", 2.0, "2"], [0, 1, 0, 1]),
        (["b", "a", "b"], [1, 0, 1]),
        (np.array(["b", "a", "b"]), [1, 0, 1]),
    ],
)
def test_equal_numbers_are_one_group_and_words_are_others(labels, codes):
    for groups in (labels, np.array(labels, dtype=object)):
        assert codes_of(check_groups(groups)).tolist() == codes


def test_what_is_masked_is_missing_among_groups_and_weights():
    masked = np.ma.masked_array([1, 2, 2], mask=[False, True, False])
    with pytest.raises(ValueError, match=r"'groups' must not be missing. That of row 1 is"):
        check_groups(masked)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        check_weights(masked, 3)


def test_missing_groups_of_arrow_dictionaries_are_refused():
    words = pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()])
    with pytest.raises(ValueError, match=r"'groups' must not be missing. That of row 1 is"):
        check_groups(words)
    assert codes_of(check_groups(words.drop_null())).tolist() == [0, 1]


def test_one_long_cell_takes_its_own_room_only():
    rng = np.random.default_rng(0)
    words = rng.choice(["ok", "bad", "late"], 1000).astype(object)
    words[7] = "x" * 100_000
    frame = pd.DataFrame({"a": rng.normal(size=1000), "note": words})
    tracemalloc.start()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 1}).fit(frame, frame.a, groups=words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a thousand times the longest would be 400 MB
    assert model.encoder_.codes[1].levels == ("bad", "late", "ok")


def test_unfitted_and_strange_inputs_are_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    with pytest.raises(NotFittedError):
        PSiLONRegressor().summary()
    with pytest.raises(ValueError, match="must be numbers"):
        PSiLONRegressor(**QUICK).fit(frame, pd.date_range("2024-01-01", periods=60))
    mixed = frame.assign(b=[dt.date(2024, 1, 1), "unknown"] * 30)
    with pytest.raises(TypeError, match=r"'b' holds .* of type date among others: turn all of its"):
        PSiLONRegressor(**QUICK).fit(mixed, frame.a)
    huge = frame.assign(b=pd.Series([10**400, 1] * 30, dtype=object))
    with pytest.raises(ValueError, match="Column 'b' holds a larger one"):
        PSiLONRegressor(**QUICK).fit(huge, frame.a)


def test_tables_that_are_read_after_all():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    model = PSiLONRegressor(**QUICK).fit(frame.assign(cut=pd.cut(frame.a, 3)), frame.a)
    assert len(model.encoder_.codes[1].levels) == 3
    with pytest.warns(UserWarning, match="has no value in any row"):
        model = PSiLONRegressor(**QUICK).fit(frame.assign(e=np.nan), frame.a)
    assert (model.predict(frame.assign(e="x")) == model.predict(frame.assign(e=1.0))).all()
    masked = np.ma.masked_greater(rng.normal(size=(60, 2)), 1.0)
    model = PSiLONRegressor(**QUICK).fit(masked, frame.a)
    assert (model.predict(masked) == model.predict(masked.filled(np.nan))).all()


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this version of polars has no wide integers")
def test_integers_of_128_bits_are_numbers():
    wide = pl.DataFrame({"a": pl.Series(range(60), dtype=pl.Int128)})
    PSiLONRegressor(**QUICK).fit(wide, np.arange(60))
