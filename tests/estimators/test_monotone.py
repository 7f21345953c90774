import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import make_classification, make_regression

import psilonnet
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import forward_error
from psilonnet.deploy import (
    FilePredictor,
    ModelFileError,
    Predictor,
    onnx_inputs,
    read_model_file,
    write_model_file,
)
from psilonnet.estimators import fit_together
from psilonnet.tables import read_columns

SMALL = {"width": 12, "depth": 2, "max_steps": 60, "random_state": 0, "verbose": False, "cv": 2}
SIGNS = {"income": 1, "debt": -1, "owner": 1, "since": 1}
AVERAGE = [Design(pieces=4), Design(columns="clipped", directions="l2")]


def credit(n=160, seed=0):
    """Return a table with all kinds of columns, holes in them, and a target that wiggles."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(100, 20, n),
            "debt": rng.exponential(3, n),
            "owner": pd.array(rng.random(n) > 0.5, dtype="boolean"),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "city": rng.choice(["x", "y", "z"], n),
        }
    )
    y = np.sin(frame.income / 8) - np.cos(frame.debt) + (frame.city == "y") + rng.normal(0, 0.2, n)
    y -= frame.owner.astype(float)  # against the direction
    frame.loc[::7, "owner"] = pd.NA
    frame.loc[::5, "debt"] = np.nan
    return frame, y.to_numpy()


def fitted(kind=PSiLONRegressor, **settings):
    frame, y = credit()
    y = y > 0 if kind is PSiLONClassifier else y
    settings = {"designs": AVERAGE, "reg_strength": (1e-4, 1e-2), **SMALL, **settings}
    return kind(**{"monotonic_cst": SIGNS, **settings}).fit(frame, y), frame


def sweeps(frame):
    """Yield tables in which one column of every row goes up, with the direction of that column."""
    steps = np.linspace(-3, 3, 25)
    for name, sign in SIGNS.items():
        known = frame[frame[name].notna()]
        if name == "owner":
            ends = [known.assign(owner=pd.array([v] * len(known), dtype="boolean")) for v in (0, 1)]
        elif name == "since":
            ends = [known.assign(since=known.since + pd.Timedelta(days=300 * s)) for s in steps]
        else:
            ends = [known.assign(**{name: known[name] + 10 * s}) for s in steps]
        yield sign, ends


def against(predict, frame):
    """Return the farthest step of predictions of real rows against a direction."""
    worst = 0.0
    for sign, tables in sweeps(frame):
        values = np.stack([np.ravel(predict(table)) for table in tables])
        worst = max(worst, float((-sign * np.diff(values, axis=0)).max()))
    return worst


@pytest.fixture(scope="module")
def model():
    return fitted()[0]


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_every_form_of_a_model_keeps_its_directions(model, tmp_path):
    frame, _ = credit()
    x = torch.from_numpy(model.encoder_.encode(read_columns(frame)))
    rounding = 2 * float(forward_error(model.net_, x, torch.full((len(x),), 10.0)).max())
    rounding *= float(model.target_.scale[0])
    assert rounding < 1e-9
    assert against(model.predict, frame) <= rounding
    model.save(tmp_path / "model.psilon")
    again = psilonnet.load(tmp_path / "model.psilon")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.feature_slopes_, model.feature_slopes_)
    assert again.summary() == model.summary()
    assert again.get_params()["monotonic_cst"] == SIGNS
    light = FilePredictor(tmp_path / "model.psilon")
    np.testing.assert_allclose(light.predict(frame), model.predict(frame), atol=1e-12)
    assert against(light.predict, frame) <= rounding
    model.export_numpy(tmp_path / "numpy")
    exported = Predictor(tmp_path / "numpy")
    np.testing.assert_allclose(exported.predict(frame), model.predict(frame), atol=1e-12)
    assert against(exported.predict, frame) <= rounding


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_onnx_keeps_directions_up_to_the_rounding_of_float32(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    frame, _ = credit()
    model.export_onnx(tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")

    def predict(table):
        return session.run(None, onnx_inputs(table, session))[0]

    x = torch.from_numpy(model.encoder_.encode(read_columns(frame)))
    radius = torch.full((len(x),), 10.0)
    rounding = 2 * float(forward_error(model.net_, x, radius, unit=2.0**-24).max())
    rounding *= float(model.target_.scale[0])
    np.testing.assert_allclose(np.ravel(predict(frame)), model.predict(frame), atol=rounding)
    assert against(predict, frame) <= rounding


def test_slopes_and_words_state_the_directions(model):
    low, high = model.feature_slopes_.T
    assert (low[[0, 2, 3]] == 0).all()
    assert (high[[0, 2, 3]] > 0).all()
    assert high[1] == 0 > low[1]
    assert np.isnan(low[4])
    np.testing.assert_allclose(
        np.maximum(high, -low)[:4], model.feature_sensitivity_raw_[:4], rtol=1e-6
    )
    assert model.monotonic_cst_.tolist() == [1, -1, 1, 1, 0]
    said = model.summary()
    assert "the prediction never falls when one of these rises: income, owner, since." in said
    assert "the prediction never rises when one of these rises: debt." in said


def test_directions_are_those_of_the_fit_whatever_is_set_later(tmp_path):
    given = dict(SIGNS)
    model, frame = fitted(monotonic_cst=given)
    said = model.summary()
    given["debt"] = 1
    assert (model.monotonic_cst_.tolist(), model.summary()) == ([1, -1, 1, 1, 0], said)
    model.save(tmp_path / "model")
    assert psilonnet.load(tmp_path / "model").get_params()["monotonic_cst"] == SIGNS
    model.set_params(monotonic_cst=None)
    assert model.summary() == said
    model.save(tmp_path / "model")
    again = psilonnet.load(tmp_path / "model")
    assert (again.predict(frame) == model.predict(frame)).all()
    assert again.summary() == said


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
@pytest.mark.parametrize("architecture", ["mlp", "crelu", "resnet"])
def test_pruned_classifiers_of_all_architectures_keep_their_directions(architecture):
    designs = [Design(architecture=architecture, pieces=3)]
    model, frame = fitted(PSiLONClassifier, prune=True, designs=designs)
    assert model.sparsity_ > 0.05
    assert against(lambda t: model.predict_proba(t)[:, 1], frame) <= 1e-14
    assert "the probability of True never falls" in model.summary()


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_other_selections_keep_the_directions(model):
    frame, _ = credit()
    for selection in ("accurate", "provable"):
        other = model.with_selection(selection)
        assert against(other.predict, frame) <= 1e-9
        assert (other.feature_slopes_[[0, 2, 3], 0] == 0).all()
    free, _ = fitted(monotonic_cst=None)
    assert against(free.predict, frame) > 1e-3  # without directions it does go against them


def test_the_report_states_the_directions(model, tmp_path):
    pytest.importorskip("matplotlib")
    model.report(tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text()
    assert "the prediction never falls when one of these rises: income, owner, since." in page


def test_directions_by_place_are_those_by_name(model):
    other, frame = fitted(monotonic_cst=[1, -1, 1, 1, 0])
    np.testing.assert_array_equal(other.predict(frame), model.predict(frame))


def test_no_directions_at_all_are_no_directions():
    given, frame = fitted(monotonic_cst={"income": 0})
    free, _ = fitted(monotonic_cst=None)
    np.testing.assert_array_equal(given.predict(frame), free.predict(frame))


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_certificates_and_ranges_hold(model):
    frame, _ = credit()
    low, high = model.output_range(frame, {"income": 5.0})
    near_low, near_high = model.output_range(frame, {"income": 5.0}, method="local")
    moved = model.predict(frame.assign(income=frame.income + 5.0))
    for a, b in ((low, high), (near_low, near_high)):
        assert ((a <= moved) & (moved <= b)).all()
    largest = model.feature_slopes_[0, 1] * 5.0
    assert (high - low <= 2 * largest * 1.001 + 1e-9).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wealth": 1}, r"must be columns of the table. These are not: \['wealth'\]"),
        ({"city": 1}, "Column 'city' holds words, such as '.', which have no order"),
        ([1, 0], "one entry for each of the 5 columns. Got 2"),
        ({"income": 2}, "monotonic_cst' parameter of PSiLONRegressor must be"),
        ("income", "monotonic_cst' parameter of PSiLONRegressor must be"),
    ],
)
def test_what_has_no_direction_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(monotonic_cst=given)


def test_several_outputs_have_no_direction():
    X, y = make_classification(60, n_classes=3, n_informative=4, random_state=0)
    with pytest.raises(ValueError, match="Got 3 classes: fit one model for each"):
        PSiLONClassifier(**SMALL, monotonic_cst={"x0": 1}).fit(X, y)
    X, y = make_regression(60, 3, n_targets=2, random_state=0)
    with pytest.raises(ValueError, match="Got 2 targets: fit one model for each"):
        PSiLONRegressor(**SMALL, monotonic_cst=[1, 0, 0]).fit(X, y)


def test_a_file_that_claims_a_direction_must_prove_it(model, tmp_path):
    path = tmp_path / "model.psilon"
    model.save(path)
    manifest, tensors = read_model_file(path)
    weaker = {k: v * 0.5 if k == "0.increasing" else v for k, v in tensors.items()}
    write_model_file(path, manifest, weaker)
    with pytest.raises(ModelFileError, match="another sign than it claims"):
        psilonnet.load(path)
    write_model_file(path, manifest, {**tensors, "0.increasing": tensors["0.increasing"][:1]})
    with pytest.raises(ModelFileError, match="another shape"):
        psilonnet.load(path)


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_fits_that_share_a_population_keep_their_own_directions():
    """Two tables of equal shape after encoding, whose directions belong to other columns."""
    rng = np.random.default_rng(0)
    a, b = (pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"]) for _ in range(2))
    a.loc[0, "a"], b.loc[0, "b"] = np.nan, np.nan
    y = rng.normal(size=80)
    models = [
        PSiLONRegressor(**SMALL, designs=[Design()], monotonic_cst={"b": sign}) for sign in (1, -1)
    ]
    assert fit_together(models, [(a, y), (b, y)]) == [None, None]
    for own, frame, sign in zip(models, (a, b), (1, -1), strict=True):
        alone = PSiLONRegressor(**own.get_params()).fit(frame, y)
        np.testing.assert_allclose(alone.predict(frame), own.predict(frame), atol=1e-5)
        step = own.predict(frame.assign(b=frame.b + 1)) - own.predict(frame)
        assert (sign * step[frame.b.notna()] >= -1e-12).all()


@pytest.mark.filterwarnings("ignore:Some rows lie farther")
def test_booleans_of_one_value_and_numbers_that_are_constant_have_no_effect():
    frame, y = credit(60)
    frame["owner"] = pd.array([True] * 60, dtype="boolean")
    frame["debt"] = 1.0
    model = PSiLONRegressor(**SMALL, designs=[Design()], monotonic_cst=SIGNS).fit(frame, y)
    assert model.encoder_.labels[:2] == ["income", "since"]
    frame.loc[3, "owner"] = pd.NA
    marked = PSiLONRegressor(**SMALL, designs=[Design()], monotonic_cst=SIGNS).fit(frame, y)
    assert marked.encoder_.labels[1:3] == ["owner = True", "owner is missing"]
    assert against(marked.predict, frame) <= 1e-12
