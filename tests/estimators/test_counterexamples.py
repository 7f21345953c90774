"""Counterexamples: inside what was asked, in the user's own table, and confirmed by predict."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.exceptions import NotFittedError

from certify.fitted_models import QUICK, moved_rows, scales_of, table
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Perturbation, attack
from psilonnet.estimators.counterexamples import safe_moves
from psilonnet.estimators.number_targets import NumberTarget

DELTA = {"a": 12.0, "b": 0.5, "day": pd.Timedelta(days=20), "city": "any", "flag": "any"}
FRAMES = {
    "pandas": lambda frame: frame.set_index(frame.index + 7),
    "categories": lambda frame: frame.astype({"city": "category"}),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.fixture(scope="module")
def models():
    frame, y = table()
    labels = np.array(["low", "high"])[(y > 0).astype(int)]
    classes = np.digitize(y, [-0.5, 0.5])
    return {
        "two": PSiLONClassifier(**QUICK).fit(frame, labels),
        "three": PSiLONClassifier(**QUICK).fit(frame, classes),
        "number": PSiLONRegressor(**QUICK).fit(frame, y),
    }


def as_pandas(moved):
    return moved if isinstance(moved, pd.DataFrame) else pd.DataFrame(dict(pandas_columns(moved)))


def pandas_columns(moved):
    names = moved.column_names if isinstance(moved, pa.Table) else moved.columns
    for name in names:
        yield name, moved[name].to_pandas()


def assert_inside(before, moved, delta):
    """No cell moved by more than it was allowed to, in the table's own units."""
    for name in before:
        old, new = before[name].reset_index(drop=True), moved[name].reset_index(drop=True)
        assert (old.isna() == new.isna()).all(), name
        if name in ("city", "flag"):
            if delta.get(name) != "any":
                assert (old.astype(str) == new.astype(str)).all()
            continue
        step = (pd.to_datetime(new) - pd.to_datetime(old) if name == "day" else new - old).abs()
        none = pd.Timedelta(0) if name == "day" else 0.0
        assert (step.dropna() <= delta.get(name, none)).all(), name


@pytest.mark.parametrize("kind", FRAMES)
def test_rows_flip_within_what_was_asked(models, kind):
    frame, _ = table(seed=1)
    for name in ("two", "three"):
        model, given = models[name], FRAMES[kind](frame)
        rows, moved = model.counterexample(given, DELTA)
        assert 0 < len(rows) < len(frame)
        assert type(moved) is type(given)
        assert (model.predict(moved) != model.predict(given)[rows]).all()
        assert_inside(frame.iloc[rows], as_pandas(moved), DELTA)
        assert not model.is_robust(given, DELTA, method="local")[rows].any()
        if kind == "pandas":
            assert (moved.index == given.index[rows]).all()
            assert (moved.dtypes[["a", "b", "day"]] == given.dtypes[["a", "b", "day"]]).all()
            assert moved["flag"].dtype == bool


def test_columns_that_were_not_named_stay_to_the_last_bit(models):
    frame, _ = table(seed=2)
    rows, moved = models["two"].counterexample(frame, {"a": 30.0})
    assert len(rows)
    pd.testing.assert_frame_equal(moved.drop(columns="a"), frame.iloc[rows].drop(columns="a"))


def test_ranges_are_left_within_what_was_asked(models):
    frame, _ = table(seed=3)
    model = models["number"]
    middle = model.predict(frame)
    wide_low, wide_high = model.output_range(frame, DELTA, method="local")
    for low, high in ((middle - 0.3, np.inf), (-np.inf, 0.2), (middle - 0.4, middle + 0.4)):
        rows, moved = model.counterexample(frame, DELTA, low=low, high=high)
        assert len(rows)
        found = model.predict(moved)
        ends = (np.broadcast_to(end, len(frame))[rows] for end in (low, high))
        assert ((found < next(ends)) | (found > next(ends))).all()
        assert ((wide_low[rows] <= found) & (found <= wide_high[rows])).all()
        assert_inside(frame.iloc[rows], moved, DELTA)
    rows, moved = model.counterexample(frame, DELTA, low=wide_low, high=wide_high)
    assert len(rows) == len(moved) == 0  # nothing leaves what is proven
    with pytest.raises(ValueError, match=r"told a range instead\. Give 'low', 'high' or both"):
        model.counterexample(frame, DELTA)
    with pytest.raises(ValueError, match="The 'low' of a range must be"):
        model.counterexample(frame, DELTA, low=[1.0, 2.0])


def test_arrays_and_several_targets():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    model = PSiLONRegressor(**QUICK).fit(x, np.stack([x[:, 0], -x[:, 1]], axis=1))
    middle = model.predict(x)
    rows, moved = model.counterexample(x, 0.3, low=middle - 0.2, high=middle + 0.2)
    assert len(rows)
    assert (np.abs(model.predict(moved) - middle[rows]) > 0.2).any(axis=1).all()
    sizes = np.array([code.scale for code in model.encoder_.codes])
    assert (np.abs(moved - x[rows]) <= 0.3 * sizes).all()


def test_shares_of_a_cell_and_amounts_by_row():
    rng = np.random.default_rng(0)
    x = np.stack([rng.permutation(200) + 50, rng.integers(1, 9, 200)], axis=1)
    model = PSiLONClassifier(**QUICK).fit(x, x[:, 0] > 140)
    amounts = np.zeros((200, 2))
    amounts[::2, 0] = 1.0
    delta = Perturbation(relative=0.02, amounts=amounts)
    rows, moved = model.counterexample(x, delta)
    assert len(rows)
    assert moved.dtype == float
    steps = np.abs(moved - x[rows])
    assert (steps[:, 0] <= amounts[rows, 0] + 0.02 * x[rows, 0]).all()
    assert (steps[:, 1] <= 0.02 * x[rows, 1]).all()


def test_columns_without_any_value_may_be_of_another_type(models):
    frame, _ = table(seed=1)
    model, none = models["two"], {"city": np.nan, "flag": None}
    delta = {"a": 30.0, "city": "any", "flag": "any"}
    rows, moved = model.counterexample(frame.assign(**none), delta)
    assert len(rows)
    assert moved[["city", "flag"]].isna().all(axis=None)
    assert model.verdict(frame[:1].assign(**none), delta).shape == (1,)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_moves_end_where_times_and_numbers_do(models, kind):
    frame, y = table(seed=1)
    for delta in (1e4, 1e6, 1e9, 1e308):
        rows, moved = models["two"].counterexample(FRAMES[kind](frame), delta)
        assert len(rows)
        days = pd.to_datetime(as_pandas(moved)["day"])
        assert ((days.dt.year > 1676) & (days.dt.year < 2263) | days.isna()).all()
    huge = frame.assign(a=frame.a * 1e300)
    model = PSiLONClassifier(**QUICK).fit(huge[["a", "b"]], y > 0)
    for delta in (1e7, 1e300):
        _, moved = model.counterexample(FRAMES[kind](huge[["a", "b"]]), delta)
        assert np.isfinite(as_pandas(moved)["a"].dropna()).all()


def test_a_proven_model_has_no_counterexamples(models):
    frame, _ = table(seed=4)
    model = models["two"]
    rows, moved = model.counterexample(frame, 1e-9)
    assert len(rows) == 0
    assert list(moved.columns) == list(frame.columns)
    robust = model.is_robust(frame, 0.05, method="local")
    assert robust.any()
    assert not robust[model.counterexample(frame, 0.05).rows].any()


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize(
    "given", [{}, {"loss": "poisson"}, {"loss": "quantile", "quantile": (0.1, 0.9)}]
)
def test_verdicts_about_ranges_hold(given):
    frame, y = table(seed=5)
    y = np.round(np.exp(y)) if given.get("loss") == "poisson" else y
    model = PSiLONRegressor(**QUICK, **given).fit(frame, y)
    rows = frame[:20]
    middle = model.predict(rows)
    off = 0.9 * np.median(middle - model.output_range(rows, 0.15)[0], axis=0)
    low, high = middle - off, middle + off
    words = model.verdict(rows, 0.15, low=low, high=high, budget=20)
    assert {"proven", "refuted"} <= set(words) <= {"proven", "refuted", "open"}
    refuted = model.counterexample(rows, 0.15, low=low, high=high).rows
    assert (np.flatnonzero(words == "refuted") == refuted).all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = model.predict(moved_rows(rows, scales_of(model), rng, 0.15))
        inside = ((low <= found) & (found <= high)).reshape(len(rows), -1).all(axis=1)
        assert inside[words == "proven"].all()
    with pytest.raises(ValueError, match=r"told a range instead\. Give 'low', 'high' or both"):
        model.verdict(rows, 0.15)


def test_moves_that_are_safe_keep_predictions_in_their_range():
    outputs = torch.tensor([[0.3], [-1.0], [2.0]], dtype=torch.float64)
    low, high = np.array([[1.0], [-np.inf], [0.0]]), np.array([[9.0], [4.0], [1.0]])
    target = NumberTarget(np.array([2.0]), np.array([3.0]))
    moves = safe_moves(target, outputs, low, high)
    expected = [[1.9 / 3, 6.1 / 3], [np.inf, 5 / 3], [8 / 3, -7 / 3]]  # the last has left
    np.testing.assert_allclose(moves, expected, rtol=1e-7)
    assert (moves[:2, 1] < np.array(expected)[:2, 1]).all()


def test_a_verdict_attacks_only_rows_that_are_not_proven(models, monkeypatch):
    frame, _ = table(seed=1)
    attacked = []

    def counted(net, x, *given, **options):
        attacked.append(len(x))
        return attack(net, x, *given, **options)

    monkeypatch.setattr("psilonnet.certify.counterexamples.attack", counted)
    for name, ends in (("two", {}), ("three", {}), ("number", {"low": -2.0, "high": 2.0})):
        words = models[name].verdict(frame, 0.05, budget=0, **ends)
        assert 0 < (words != "proven").sum() < len(frame)
        assert attacked.pop() == (words != "proven").sum()
        models[name].verdict(frame[words == "proven"], 0.05, **ends)
        assert not attacked


@pytest.mark.parametrize("budget", [-1, 0.5, "all", None])
def test_a_budget_is_a_number_of_cases(budget, models):
    frame, _ = table(seed=1)
    for name, ends in (("two", {}), ("number", {"low": 0})):
        with pytest.raises(ValueError, match=f"'budget' must be a whole number .* Got {budget!r}"):
            models[name].verdict(frame[:4], 0.1, budget=budget, **ends)
        none = models[name].verdict(frame, 0.4, budget=0, **ends)
        some = models[name].verdict(frame, 0.4, budget=40, **ends)
        assert (some[none != "open"] == none[none != "open"]).all()


def test_a_range_without_numbers_is_refused(models):
    frame, _ = table(seed=1)
    high = np.where(np.arange(len(frame)) == 7, -1.0, 2.0)
    for ask in (models["number"].verdict, models["number"].counterexample):
        with pytest.raises(ValueError, match=r"must not be above its 'high'\. It is for row 7"):
            ask(frame, 0.1, low=0.0, high=high)


@pytest.mark.parametrize("model", [PSiLONClassifier(), PSiLONRegressor()])
@pytest.mark.parametrize("name", ["verdict", "counterexample", "is_robust", "output_range"])
def test_a_fit_comes_first(model, name):
    if hasattr(model, name):
        with pytest.raises(NotFittedError):
            getattr(model, name)(table()[0], 0.1)
