"""Certificates of fitted models, attacked through the whole preprocessing."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
import torch

import psilonnet
from experiments.attack import attack, averaged
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Perturbation, class_margins
from psilonnet.deploy.predictor import Predictor
from psilonnet.tables import read_columns


def exported(model, folder):
    model.export_numpy(folder)
    return Predictor(folder)


def proofs_of(model, rows, delta, method):
    """Return the proofs about the parts of a table."""
    return list(model._certifier._parts(read_columns(rows), delta, method))


SMALL = {"width": 16, "depth": 2, "max_steps": 80, "learning_rate": 1e-2, "random_state": 0}
QUICK = {**SMALL, "reg_strength": 1e-3, "knots": 0}


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(100, 20, n),
            "b": rng.exponential(3, n),
            "city": rng.choice(["x", "y", "z"], n),
            "flag": rng.random(n) > 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
        }
    )
    y = (frame.a - 100) / 20 - frame.b / 3 + (frame.city == "y") + 0.5 * frame.flag
    frame.loc[::11, "b"] = np.nan
    return frame, y.to_numpy()


MODELS = {
    "plain": {},
    "robust": {"scaling": "robust"},
    "knots": {"knots": 4},
    "resnet": {"architecture": "resnet"},
    "ensemble": {"n_members": 3},
    "average": {"scaling": "log_tails", "knots": (0, 4), "selection": "average", "n_members": 2},
    "pruned": {"prune": True, "architecture": "crelu"},
}


def moved_rows(frame, scales, rng, size):
    """Return rows whose numbers moved by up to ``size`` scales, at random or to a corner."""
    moved = frame.copy()
    for name, scale in scales.items():
        step = rng.uniform(-1, 1, len(frame))
        if rng.random() < 0.5:
            step = np.sign(step)
        shift = step * size * scale
        if name == "day":
            moved[name] = moved[name] + pd.to_timedelta(shift, "D")
        else:
            moved[name] = moved[name] + shift
    return moved


def scales_of(model):
    codes = zip(model.encoder_.names, model.encoder_.codes, strict=True)
    return {name: code.scale for name, code in codes if hasattr(code, "scale")}


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize("method", ["global", "local"])
@pytest.mark.parametrize("name", MODELS)
def test_class_never_changes_within_the_radius(name, method):
    frame, y = table()
    model = PSiLONClassifier(**{**QUICK, **MODELS[name]}).fit(frame, np.digitize(y, [-0.5, 0.7]))
    rows, _ = table(40, seed=1)
    radius = model.certified_radius(rows, method=method)
    assert radius.shape == (40,)
    assert (radius >= 0).all()
    assert (radius > 0).mean() > 0.9
    rng = np.random.default_rng(0)
    before = model.predict(rows)
    for _ in range(30):
        assert (model.predict(moved_rows(rows, scales_of(model), rng, radius)) == before).all()


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize("method", ["global", "local"])
@pytest.mark.parametrize("name", MODELS)
def test_output_range_is_never_left(name, method):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, **MODELS[name]}).fit(frame, 1000 + 50 * y)
    rows, _ = table(40, seed=1)
    low, high = model.output_range(rows, 0.5, method=method)
    before = model.predict(rows)
    assert ((low < before) & (before < high)).all()
    rng = np.random.default_rng(0)
    for _ in range(30):
        after = model.predict(moved_rows(rows, scales_of(model), rng, 0.5))
        assert ((low <= after) & (after <= high)).all()
    narrow = model.output_range(rows, 0.0)
    np.testing.assert_allclose(narrow[1] - narrow[0], 0, atol=1e-8)


def test_local_certificates_are_never_worse_and_often_better():
    frame, y = table()
    bent = np.abs(y - np.median(y))
    classifier = PSiLONClassifier(**QUICK).fit(frame, bent > np.median(bent))
    far, near = (
        classifier.certified_radius(frame, method=method) for method in ("global", "local")
    )
    assert (near >= far).all()
    assert near.sum() > far.sum()
    regressor = PSiLONRegressor(**QUICK).fit(frame, bent)
    widths = {}
    for method in ("local", "global"):
        low, high = regressor.output_range(frame, 0.02, method=method)
        widths[method] = high - low
    assert (widths["local"] <= widths["global"]).all()
    assert widths["local"].sum() < 0.9 * widths["global"].sum()


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
@pytest.mark.parametrize("knots", [0, 3])
def test_categories_may_take_any_level(method, knots):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "knots": knots}).fit(frame, y)
    low, high = model.output_range(frame, {"city": "any", "flag": "any"}, method=method)
    for city in ("x", "y", "z", "never seen"):
        for flag in (True, False):
            after = model.predict(frame.assign(city=city, flag=flag))
            assert ((low <= after) & (after <= high)).all()
    classifier = PSiLONClassifier(**{**QUICK, "knots": knots}).fit(frame, y > 0)
    stays = classifier.is_robust(frame, {"city": "any"}, method=method)
    assert stays.dtype == bool
    before = classifier.predict(frame)
    for city in ("x", "y", "z"):
        assert (classifier.predict(frame.assign(city=city)) == before)[stays].all()


def test_delta_agrees_with_the_radius():
    frame, y = table()
    model = PSiLONClassifier(**QUICK).fit(frame, y > 0)
    radius = model.certified_radius(frame)
    middle = float(np.median(radius))
    stays = model.is_robust(frame, middle)
    assert (stays == (radius > middle)).mean() > 0.98


def test_loaded_model_certifies_the_same(tmp_path):
    frame, y = table()
    model = PSiLONClassifier(**QUICK).fit(frame, y > 0)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(
        psilonnet.load(tmp_path / "m").certified_radius(frame), model.certified_radius(frame)
    )


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        ({"A": 1.0}, r"must be columns.*\['A'\]"),
        ({"a": -1.0}, r"'a' \(kind 'number'\).*Got -1.0"),
        ({"city": 1.0}, r"'any' for categories. Got 1.0"),
        ({"a": "any"}, r"Only a category can move in any way. Column 'a'"),
        ({"a": dt.timedelta(1)}, r"'a'.*Got datetime.timedelta"),
        ([1.0], r"one amount for each of the 5 columns.*Got \(1,\)"),
        ({"day": dt.timedelta(-1)}, r"timedelta of at least 0.*Got datetime.timedelta"),
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
    model = PSiLONRegressor(**{**QUICK, "scaling": "standard"}).fit(frame, y)
    assert model.encoder_.kinds == ("time", "duration")
    step = np.timedelta64(50, "us")
    low, high = model.output_range(frame, {"when": step, "wait": step})
    moved = model.predict(frame + step)
    assert (model.predict(frame) != moved).any()
    assert (low <= moved).all()
    assert (moved <= high).all()


@pytest.mark.parametrize("name", MODELS)
def test_no_gradient_leaves_what_is_proven(name, tmp_path):
    # Projected gradient on the loaded model, in the space of the encoded columns.
    frame, y = table()
    classifier = PSiLONClassifier(**{**QUICK, **MODELS[name]}).fit(frame, np.digitize(y, [-0.5, 1]))
    regressor = PSiLONRegressor(**{**QUICK, **MODELS[name]}).fit(frame, y)
    for number, model in enumerate((classifier, regressor)):
        model.save(tmp_path / f"{number}")
    classifier, regressor = (psilonnet.load(tmp_path / f"{number}") for number in range(2))
    rows = frame[:40]

    for method in ("global", "local"):
        (proofs,) = proofs_of(classifier, rows, None, method)
        radii = torch.tensor(classifier.certified_radius(rows, method=method))
        radius = proofs.unit * radii[:, None]
        margins, asked = class_margins(proofs.outputs)
        found = attack(averaged(proofs.net), proofs.x, radius, -asked.expanded, signs=(1.0,))
        assert (found < margins).all()

        (proofs,) = proofs_of(regressor, rows, 0.2, method)
        radius = proofs.box.radius
        up = torch.ones(len(rows), 1, 1, dtype=torch.float64)
        found = attack(averaged(proofs.net), proofs.x, radius, up, signs=(1.0,))
        _, high = regressor.output_range(rows, 0.2, method=method)
        reached = regressor.target_.decode((proofs.outputs + found).numpy())[:, 0]
        assert (reached <= high + 1e-12).all()


def test_many_rows_are_proven_in_parts(monkeypatch):
    frame, y = table()
    labels = np.digitize(y, [-0.5, 0.5])
    classifier = PSiLONClassifier(**QUICK).fit(frame, labels)
    regressor = PSiLONRegressor(**QUICK).fit(frame, y)

    def proofs():
        for method in ("global", "local"):
            yield classifier.certified_radius(frame, method=method)
            yield from regressor.output_range(frame, 0.1, method=method)

    whole = list(proofs())
    monkeypatch.setattr("psilonnet.certify.certifier.PART", 3000)
    parts = list(proofs())
    assert len(proofs_of(classifier, frame, None, "local")) > 10
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_margin_of_zero_has_radius_zero():
    x = np.array([["a", 1.0], ["b", np.nan]] * 20, dtype=object)
    model = PSiLONClassifier(**{**QUICK, "max_steps": 1, "calibrate": False}).fit(x, [0, 1] * 20)
    for parameter in model.net_.parameters():
        parameter.data.zero_()
    for method in ("global", "local"):
        with pytest.warns(UserWarning, match="this table has none"):
            assert (model.certified_radius(x, method=method) == 0).all()


@pytest.mark.parametrize("delta", [-1, float("nan"), dt.timedelta(days=1), [[0.1]], True])
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
    none = model.output_range(frame, Perturbation())
    np.testing.assert_allclose(none[0], none[1], atol=1e-8)


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
    ],
)
def test_wrong_perturbations_are_refused(moves, words):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 2}).fit(frame, y)
    with pytest.raises(ValueError, match=f"(?s){words}"):
        model.output_range(frame, moves)


def test_a_radius_without_numbers_is_warned_about():
    city = np.array(["Lima", "Oslo", "Rome"] * 20)
    model = PSiLONClassifier(width=8, depth=1, max_steps=20, reg_strength=1e-3, knots=0)
    frame = pd.DataFrame({"same": 1.0, "city": city})
    model.fit(frame, city == "Oslo")
    with pytest.warns(UserWarning, match=r"table has none that vary.*delta=\{'city': 'any'\}"):
        model.certified_radius(frame)
    model.is_robust(frame, {"city": "any"})  # no word
    frame = pd.DataFrame({"same": [1.0, np.nan] * 30})
    model.fit(frame, frame.same.isna())
    with pytest.warns(UserWarning, match=r"is huge says nothing\.$"):
        model.certified_radius(frame)
