"""Intervals and sets: what they hold, with and without errors of reading."""

import pickle
import warnings

import numpy as np
import pytest

import psilonnet
from estimators.messy import QUICK, messy
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Perturbation
from psilonnet.deploy import write_model_file
from psilonnet.deploy.model_file import read_model_file
from psilonnet.estimators.number_targets import QuantileTarget

DESIGNS = [Design(), Design(directions="l2", pieces=3, columns="clipped")]
SETTINGS = {**QUICK, "designs": DESIGNS, "width": 12}


@pytest.fixture(scope="module")
def rows():
    """Rows to fit, rows to conformalize and rows to predict, each with numbers and classes."""
    frame, _, score = messy(500)
    rng = np.random.default_rng(1)
    y = score + rng.normal(0, 0.4, len(score))
    cuts = np.digitize(y, [-0.5, 0.7])
    parts = [slice(0, 240), slice(240, 400), slice(400, 500)]
    return [(frame[part].reset_index(drop=True), y[part], cuts[part]) for part in parts]


@pytest.fixture(scope="module")
def models(rows):
    frame, y, cuts = rows[0]
    words = np.array(["low", "mid", "high"])[cuts]
    return {
        "regressor": PSiLONRegressor(**SETTINGS).fit(frame, y),
        "binary": PSiLONClassifier(**SETTINGS).fit(frame, cuts > 0),
        "three": PSiLONClassifier(**SETTINGS).fit(frame, words),
    }


def target_of(name, part):
    _, y, cuts = part
    if name == "regressor":
        return y
    return cuts > 0 if name == "binary" else np.array(["low", "mid", "high"])[cuts]


def conformalized(models, rows, name):
    model = pickle.loads(pickle.dumps(models[name]))
    return model.conformalize(rows[1][0], target_of(name, rows[1]))


def test_interval_is_the_prediction_and_the_quantile_of_the_errors(models, rows):
    model = conformalized(models, rows, "regressor")
    errors = np.sort(np.abs(rows[1][1] - model.predict(rows[1][0])))
    for coverage, rank in ((0.9, 145), (0.5, 81)):  # ceil(c * 161)
        low, high = model.predict_interval(rows[2][0], coverage)
        predicted = model.predict(rows[2][0])
        np.testing.assert_allclose(high - predicted, errors[rank - 1], rtol=1e-12)
        np.testing.assert_allclose(predicted - low, errors[rank - 1], rtol=1e-12)
    held = (low <= rows[2][1]) & (rows[2][1] <= high)
    assert 0.35 < held.mean() < 0.65


def test_errors_without_conformalizing_are_those_on_held_out_rows(models, rows):
    model, (frame, y, _) = models["regressor"], rows[0]
    assert model.coverage_basis_ == "held-out rows"
    record, shares = model._record, np.array(model.path_["weight"])
    outputs = np.tensordot(shares, np.stack([c.outputs for c in record.candidates]), axes=1)
    truth = record.held_out.y.numpy()
    errors = np.sort(np.abs(outputs - truth)[:, 0] * model.target_.scale[0])
    low, high = model.predict_interval(frame, 0.8)
    np.testing.assert_allclose((high - low) / 2, errors[int(np.ceil(0.8 * 241)) - 1], rtol=1e-6)
    # Rows of the fit have smaller errors than those that were held out.
    assert ((low <= y) & (y <= high)).mean() > 0.75


def test_weight_of_a_row_counts_like_copies(rows):
    frame, y, _ = rows[0]
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    train, held = np.arange(120), np.arange(120, 240)
    where = np.repeat(np.arange(240), counts)
    copied = [(np.flatnonzero(np.isin(where, side)) for side in (train, held))]
    settings = {**QUICK, "cv": [(train, held)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", psilonnet.estimators.HeldOutWarning)
        weighted = PSiLONRegressor(**settings).fit(frame, y, sample_weight=counts)
        copies = PSiLONRegressor(**{**settings, "cv": [tuple(c) for c in copied]})
        copies.fit(frame.iloc[where], y[where])
    for coverage in (0.3, 0.8, 0.95):
        ends = [m.predict_interval(rows[2][0], coverage) for m in (weighted, copies)]
        widths = [high - low for low, high in ends]
        # The new row weighs as much as a given one, and these differ: one rank at most.
        ranks = [(m._known_errors.values[0] <= w[0] / 2).mean() for m, w in
                 zip((weighted, copies), widths, strict=True)]  # fmt: skip
        assert abs(ranks[0] - ranks[1]) <= 0.02
    np.testing.assert_allclose(*[m._known_errors.values for m in (weighted, copies)], rtol=1e-4)


@pytest.mark.parametrize("name", ["binary", "three"])
def test_set_holds_the_classes_above_a_threshold_and_is_never_empty(name, models, rows):
    model = conformalized(models, rows, name)
    y = target_of(name, rows[1])
    own = model.predict_proba(rows[1][0])[np.arange(160), np.searchsorted(model.classes_, y)]
    probabilities = model.predict_proba(rows[2][0])
    for coverage, rank in ((0.9, 145), (0.2, 33)):
        sets = model.predict_set(rows[2][0], coverage)
        least = np.sort(own)[::-1][rank - 1]
        expected = probabilities >= least * (1 - 1e-12)
        expected[np.arange(100), probabilities.argmax(axis=1)] = True
        np.testing.assert_array_equal(sets, expected)
    assert sets.any(axis=1).all()
    assert (probabilities < least).all(axis=1).any()  # by the threshold alone some are empty


def moved(frame, rng, share, amount):
    """The same rows as somebody may read them."""
    other = frame.copy()
    other["age"] = frame["age"] * (1 + share * rng.choice([-1, 0.3, 1], len(frame)))
    other["joined"] = frame["joined"] + np.array(rng.integers(-amount, amount + 1, len(frame)),
                                                 dtype="timedelta64[D]")  # fmt: skip
    other["city"] = rng.choice(["Rome", "Oslo", "Lima"], len(frame))
    return other


@pytest.mark.parametrize("name", ["regressor", "binary", "three"])
@pytest.mark.parametrize("method", ["global", "auto"])
def test_what_is_read_within_delta_keeps_what_the_true_row_has(name, method, models, rows):
    model, frame = conformalized(models, rows, name), rows[2][0]
    # Of the reading, a share of the true cell is up to 0.02 / 0.98.
    delta = Perturbation(relative={"age": 0.02 / 0.98}, amounts={"joined": 9}, levels=["city"])
    rng = np.random.default_rng(0)
    for coverage in (0.3, 0.9):
        if name == "regressor":
            low, high = model.predict_interval(frame, coverage)
        else:
            sets = model.predict_set(frame, coverage)
        for _ in range(5):
            read = moved(frame, rng, 0.02, 9)
            if name == "regressor":
                lower, upper = model.predict_interval(read, coverage, delta=delta, method=method)
                assert (lower <= low).all()
                assert (upper >= high).all()
            else:
                wide = model.predict_set(read, coverage, delta=delta, method=method)
                assert (wide >= sets).all()


@pytest.mark.parametrize("name", ["regressor", "binary", "three"])
def test_no_delta_is_a_delta_of_zero_up_to_rounding(name, models, rows):
    model, frame = models[name], rows[2][0]
    if name == "regressor":
        ends = model.predict_interval(frame), model.predict_interval(frame, delta=0.0)
        np.testing.assert_allclose(*ends, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_less(ends[1][0], ends[0][0])
        wider = model.predict_interval(frame, delta=0.1)
        assert np.mean(wider[1] - wider[0]) > 1.01 * np.mean(ends[0][1] - ends[0][0])
    else:
        sets = model.predict_set(frame, 0.8)
        np.testing.assert_array_equal(model.predict_set(frame, 0.8, delta=0.0), sets)
        assert model.predict_set(frame, 0.8, delta=0.5).sum() > sets.sum()


def test_several_targets_are_covered_each_by_itself(rows):
    frame, y, _ = rows[0]
    model = PSiLONRegressor(**QUICK).fit(frame, np.stack([y, 100 * y**2], axis=1))
    low, high = model.predict_interval(frame, 0.9, delta=0.01)
    assert low.shape == high.shape == (240, 2)
    both = np.stack([rows[1][1], 100 * rows[1][1] ** 2], axis=1)
    model.conformalize(rows[1][0], both)
    low, high = model.predict_interval(rows[1][0], 0.9)
    share = ((low <= both) & (both <= high)).mean(axis=0)
    np.testing.assert_allclose(share, 145 / 160)


@pytest.mark.parametrize("name", ["regressor", "binary", "three"])
def test_intervals_and_sets_survive_files_and_pickles(name, models, rows, tmp_path):
    for model in (models[name], conformalized(models, rows, name)):
        model.save(tmp_path / "model")
        method = "predict_interval" if name == "regressor" else "predict_set"
        first = getattr(model, method)(rows[2][0], 0.8)
        for again in (psilonnet.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(getattr(again, method)(rows[2][0], 0.8), first)
            assert again.coverage_basis_ == model.coverage_basis_


def test_file_of_the_format_before_has_no_errors_and_says_so(models, rows, tmp_path, monkeypatch):
    model = models["regressor"]
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    manifest.pop("errors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("errors.")}
    monkeypatch.setattr("psilonnet.deploy.model_file.FORMAT", 2)
    write_model_file(tmp_path / "old", manifest, kept)
    monkeypatch.undo()
    old = psilonnet.load(tmp_path / "old")
    assert old.coverage_basis_ is None
    with pytest.raises(ValueError, match=r"file is of an older version\. Call conformalize"):
        old.predict_interval(rows[2][0])
    old.conformalize(*rows[1][:2])
    new = conformalized(models, rows, "regressor")
    ends = old.predict_interval(rows[2][0]), new.predict_interval(rows[2][0])
    np.testing.assert_array_equal(*ends)


def test_another_selection_has_errors_of_its_own(rows):
    frame, y, _ = rows[0]
    settings = {**SETTINGS, "reg_strength": (1e-3, 1.0), "selection": "accurate"}
    model = PSiLONRegressor(**settings).fit(frame, y)
    other = model.with_selection(5.0)
    fresh = PSiLONRegressor(**{**settings, "selection": 5.0}).fit(frame, y)
    np.testing.assert_array_equal(other.predict_interval(frame), fresh.predict_interval(frame))
    widths = [np.subtract(*m.predict_interval(frame)[::-1])[0] for m in (model, other)]
    assert widths[1] > widths[0]
    model.conformalize(*rows[1][:2])
    with pytest.warns(UserWarning, match="Another choice makes other errors"):
        again = model.with_selection(5.0)
    assert again.coverage_basis_ == "held-out rows"
    assert model.coverage_basis_ == "conformalized rows"


def test_where_nothing_is_held_out_conformalizing_is_asked_for(rows):
    frame, y, _ = rows[0]
    with pytest.warns(UserWarning, match="No rows could be held out"):
        model = PSiLONRegressor(**{**QUICK, "cv": None}).fit(frame[:30], y[:30])
    assert model.coverage_basis_ is None
    with pytest.raises(ValueError, match="nothing was held out in its fit"):
        model.predict_interval(frame)
    model.conformalize(*rows[1][:2])
    assert np.isfinite(model.predict_interval(frame)).all()


def test_validation_rows_are_what_was_held_out(rows):
    frame, y, _ = rows[0]
    settings = {**QUICK, "cv": None}
    model = PSiLONRegressor(**settings).fit(frame, y, validation_data=rows[1][:2])
    other = pickle.loads(pickle.dumps(model)).conformalize(*rows[1][:2])
    widths = [np.subtract(*m.predict_interval(frame)[::-1])[0] for m in (model, other)]
    np.testing.assert_allclose(*widths, rtol=1e-5)


def test_too_few_rows_rule_nothing_out_and_say_so(models, rows):
    model = pickle.loads(pickle.dumps(models["regressor"]))
    model.conformalize(rows[1][0][:8], rows[1][1][:8])
    with pytest.warns(UserWarning, match=r"0\.9 needs at least 9 rows.*at most 0\.8889"):
        low, high = model.predict_interval(rows[2][0])
    assert (low == -np.inf).all()
    assert (high == np.inf).all()
    three = pickle.loads(pickle.dumps(models["three"]))
    half = np.arange(160) // 20
    three.conformalize(rows[1][0], target_of("three", rows[1]), groups=half)
    assert three.coverage_basis_ == "conformalized groups"
    with pytest.warns(UserWarning, match="at least 9 groups"):
        assert three.predict_set(rows[2][0]).all()
    with pytest.warns(UserWarning, match="at least 9 groups"):
        assert three.predict_set(rows[2][0], delta=0.1).all()


def test_rows_of_unknown_classes_make_all_sets_larger(models, rows):
    model, known = (pickle.loads(pickle.dumps(models["three"])) for _ in range(2))
    y = target_of("three", rows[1]).astype(object)
    known.conformalize(rows[1][0], y.astype(str))
    y[:12] = "huge"
    with pytest.warns(UserWarning, match="12 of 160 rows are of classes that the model does not"):
        model.conformalize(rows[1][0], y.astype(str))
    assert model.predict_set(rows[2][0]).sum() > known.predict_set(rows[2][0]).sum()
    y[:] = "huge"
    with pytest.raises(ValueError, match="must be classes of the model"):
        model.conformalize(rows[1][0], y.astype(str))


@pytest.mark.parametrize("name", ["binary", "regressor"])
def test_no_rows_cannot_be_conformalized(name, models, rows):
    with pytest.raises(ValueError, match=r"at least one row to conformalize\. Got none"):
        models[name].conformalize(rows[1][0][:0], target_of(name, rows[1])[:0])


def test_several_quantiles_are_conformalized_quantile_regression(rows, tmp_path):
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    model = PSiLONRegressor(**QUICK, loss="quantile", quantile=levels).fit(*rows[0][:2])
    low, high = model.predict_interval(rows[1][0])  # from held-out rows
    assert low.shape == (160,)
    assert 0.8 < ((low <= rows[1][1]) & (rows[1][1] <= high)).mean() < 1
    model.conformalize(*rows[1][:2])
    known, quantiles = model.predict(rows[1][0]), model.predict(rows[2][0])
    y = rows[1][1]
    for coverage, first, rank in ((0.9, 0, 145), (0.5, 1, 81), (0.7, 0, 113)):
        last = -1 - first
        outside = np.sort(np.maximum(known[:, first] - y, y - known[:, last]))[rank - 1]
        low, high = model.predict_interval(rows[2][0], coverage)
        np.testing.assert_allclose(low, quantiles[:, first] - outside, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(high, quantiles[:, last] + outside, rtol=1e-9, atol=1e-9)
    assert np.ptp(high - low) > 0.01 * np.mean(high - low)  # the width follows the row
    read = moved(rows[2][0], np.random.default_rng(0), 0.0, 9)
    lower, upper = model.predict_interval(read, 0.7, delta={"joined": 9, "city": "any"})
    assert (lower <= low).all()
    assert (upper >= high).all()
    model.save(tmp_path / "model")
    again = psilonnet.load(tmp_path / "model").predict_interval(rows[2][0], 0.7)
    np.testing.assert_array_equal(again, (low, high))


def test_quantiles_that_would_cross_meet_halfway():
    target = QuantileTarget(np.zeros(2), np.ones(2), (0.1, 0.9))
    ends = np.array([[0.0, 1.0], [0.0, 4.0]])
    low, high = target.interval(ends, ends, np.array([-1.0]), 0.5)
    np.testing.assert_allclose(low[:, 0], [0.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(high[:, 0], [0.5, 3.0], atol=1e-12)


def test_intervals_of_what_was_read_hold_those_of_quantiles_that_would_cross():
    """The ends of the box did not cross, and left out where the quantiles of a row in it meet."""
    rng = np.random.default_rng(0)
    target = QuantileTarget(np.zeros(3), np.ones(3), (0.1, 0.5, 0.9))
    rows = np.sort(rng.normal(size=(200, 3)), axis=1)
    reach = rng.exponential(size=(200, 3))
    least, largest = (np.sort(rows + sign * reach, axis=1) for sign in (-1, 1))
    for error in (-2.0, -0.5, 0.0, 1.0):
        low, high = target.interval(rows, rows, np.array([error]), 0.8)
        lower, upper = target.interval(least, largest, np.array([error]), 0.8)
        assert (lower <= low).all()
        assert (upper >= high).all()


def test_intervals_of_counts_grow_like_the_root_of_the_mean(rows):
    rng = np.random.default_rng(0)
    counts = [rng.poisson(np.exp(1 + part[1])) for part in rows]
    model = PSiLONRegressor(**QUICK, loss="poisson").fit(rows[0][0], counts[0])
    model.conformalize(rows[1][0], counts[1])
    mean = model.predict(rows[1][0])
    error = np.sort(np.abs(counts[1] - mean) / np.sqrt(mean))[145 - 1]
    new = model.predict(rows[2][0])
    low, high = model.predict_interval(rows[2][0])
    np.testing.assert_allclose(high, new + error * np.sqrt(new), rtol=1e-9)
    np.testing.assert_allclose(low, np.maximum(new - error * np.sqrt(new), 0), atol=1e-9)
    read = moved(rows[2][0], rng, 0.0, 9)
    lower, upper = model.predict_interval(read, delta={"joined": 9, "city": "any"})
    assert (lower <= low).all()
    assert (upper >= high).all()
