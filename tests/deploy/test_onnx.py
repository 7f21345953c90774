"""ONNX files in the real runtime: what they give is what predict gives, up to float32."""

import json
import sys
import warnings
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import polars as pl
import pytest
import torch

from deploy.several_maps import several_maps
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import forward_error
from psilonnet.deploy import Outcome, onnx_inputs, write_onnx, write_onnx_core
from psilonnet.deploy.onnx.outcome import _plain_labels
from psilonnet.tables import NumberCode, TableEncoder, read_columns
from sizes import size

SMALL = {"width": 16, "depth": 2, "max_steps": 40, "learning_rate": 1e-2, "random_state": 0}
QUICK = {**SMALL, "reg_strength": 1e-3, "designs": [Design()], "cv": 2}
CRELU = Design(architecture="crelu", pieces=3)
TOLERANCE = 1e-5
# A few tables in every run, of all kinds; in the long one all of them.
TABLES = size("brazilian_houses,compas_two_years,road_safety", long="all")


def messy(n=150, seed=0):
    """Return a frame with all kinds of columns, and what depends on it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age in years (€)": rng.normal(40, 12, n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "member": rng.random(n) > 0.5,
            "joined": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 8e7, n), "s"),
            "grade": pd.Categorical(rng.choice([1, 2, 3, 4], n)),
            "number": 1e9 + rng.integers(0, 1000, n),
            "same": 1.0,
            "word": "w",
        }
    )  # fmt: skip
    score = (frame["age in years (€)"] - 40) / 12 + (frame.city == "Oslo") + frame.member
    score = score.to_numpy() + (frame.number.to_numpy() - 1e9) / 500
    frame.loc[::17, "age in years (€)"] = np.nan
    frame.loc[::19, "city"] = None
    frame.loc[3, "city"] = "Rare"
    frame.loc[::23, "joined"] = pd.NaT
    return frame, score


def later(n=80):
    """Return rows with cells that training has not seen."""
    frame, _ = messy(n, seed=1)
    frame["member"] = frame.member.astype(object)
    frame.loc[::5, "member"] = None
    frame["grade"] = frame.grade.cat.add_categories([9])
    frame.loc[::7, "grade"] = 9
    frame.loc[::11, "grade"] = None
    frame.loc[::13, "city"] = "unseen"
    frame.loc[::9, "number"] = np.nan
    frame.loc[::8, "same"] = 3.0
    return frame


def session_of(model, path, **options):
    model.export_onnx(path, **options)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def deviation(model, rows, session):
    """Return the largest relative deviation, and check the labels wherever they are clear."""
    inputs = onnx_inputs(rows, session)
    if isinstance(model, PSiLONRegressor):
        (found,) = session.run(["prediction"], inputs)
        expected = model.predict(rows)
        # A prediction near zero is as exact as the unit in which the target is learned.
        size, unit = np.maximum(np.abs(expected), model.target_.scale), model.target_.scale.max()
    else:
        label, found = session.run(["label", "probabilities"], inputs)
        expected = model.predict_proba(rows)
        size, unit = np.maximum(expected, 1e-30), 1.0
        top = np.sort(expected, axis=1)
        clear = top[:, -1] - top[:, -2] > TOLERANCE
        np.testing.assert_array_equal(label[clear], model.predict(rows)[clear])
        assert label.shape == (len(expected),)
    assert found.shape == expected.shape
    assert found.dtype == np.float64
    # Equality of models that say the same everywhere would prove nothing.
    assert len(rows) < 10 or np.ptp(expected, axis=0).max() > 0.05 * unit
    return float((np.abs(found - expected) / size).max())


CLASSIFIERS = {
    "plain": {},
    "crelu": {"designs": [Design(architecture="crelu")]},
    "resnet of knots": {"designs": [Design(architecture="resnet", pieces=5)]},
    "clipped folds": {"designs": [Design(columns="clipped", pieces=3)], "cv": 3},
    "average": {
        "designs": [Design(), Design(directions="l2", pieces=4, columns="clipped")],
        "selection": "accurate",
        "reg_strength": (1e-4, 1e-3),
    },
    "calibrated": {"calibrate": True, "cv": 3},
    "pruned": {"prune": True, "max_steps": 60},
}
REGRESSORS = {
    "one target": {},
    "targets": {"designs": [Design(architecture="resnet")], "prune": True, "max_steps": 60},
    "column of a target": {"designs": [Design(architecture="crelu")], "prune": True, "cv": 3},
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_and_probabilities_are_those_of_the_model(name, tmp_path):
    frame, score = messy()
    many = name in ("plain", "resnet of knots")
    labels = np.digitize(score, np.linspace(-1, 4, 6)) if many else np.where(score > 1, "y", "n")
    model = PSiLONClassifier(**{**QUICK, **CLASSIFIERS[name]}).fit(frame, labels)
    session = session_of(model, tmp_path / "model.onnx")
    assert deviation(model, frame, session) < TOLERANCE
    assert deviation(model, later(), session) < TOLERANCE
    for rows in (1, 2, 7):
        assert deviation(model, later()[:rows], session) < TOLERANCE


@pytest.mark.parametrize("name", REGRESSORS)
def test_predictions_are_those_of_the_model(name, tmp_path):
    frame, score = messy()
    y = {
        "one target": 1e6 + score,
        "targets": np.stack([score, -100 * score, score**2], axis=1),
        "column of a target": score[:, None],
    }[name]
    model = PSiLONRegressor(**{**QUICK, **REGRESSORS[name]}).fit(frame, y)
    session = session_of(model, tmp_path / "model.onnx")
    assert deviation(model, frame, session) < TOLERANCE
    assert deviation(model, later(), session) < TOLERANCE


@pytest.fixture(scope="module")
def fitted():
    frame, score = messy()
    return PSiLONRegressor(**{**QUICK, "designs": [CRELU]}).fit(frame, score)


@pytest.fixture(scope="module")
def exported(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    return path, session_of(fitted, path)


@pytest.mark.parametrize("bend", ["identity", "clipped", "log_tails"])
def test_core_has_only_what_verifiers_know(bend, tmp_path):
    frame, score = messy()
    settings = {**QUICK, "designs": [replace(CRELU, columns=bend)]}
    fitted = PSiLONRegressor(**settings).fit(frame, score)
    session = session_of(fitted, tmp_path / "core.onnx", core_only=True)
    model = onnx.load(tmp_path / "core.onnx")
    assert {node.op_type for node in model.graph.node} == {"Gemm", "Add", "Relu"}
    encoder, net = fitted.encoder_, fitted.net_
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("x", ["rows", encoder.width], "tensor(float)")
    ]
    notes = {p.key: json.loads(p.value) for p in model.metadata_props}
    words = "" if bend == "identity" else f"{bend} of "
    pairs = zip(encoder.labels, encoder.holds_numbers, strict=True)
    assert notes["columns"] == [words * bool(number) + label for label, number in pairs]
    assert ("maps" in notes) == (bend != "identity")
    encoded = encoder.encode(read_columns(later()))
    seen = mapped_by_hand(encoded, notes["maps"]) if "maps" in notes else encoded
    (found,) = session.run(["outputs"], {"x": seen.astype(np.float32)})
    expected = net(torch.from_numpy(encoded)).numpy()
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
    x = torch.from_numpy(encoded)
    far = forward_error(net, x, torch.zeros(len(x)).double(), unit=2**-24)
    assert (np.abs(found - expected).max(axis=1) <= far.numpy()).all()


def mapped_by_hand(encoded, maps):
    """Return what networks see, by what the docs say of the file's metadata."""
    bends = {
        "log_tails": lambda u: 3 * np.arcsinh(u / 3),
        "clipped": lambda u: u / np.hypot(1, u / 3),
    }
    blocks = []
    for own in maps:
        z, c, s = encoded[:, own["inputs"]], np.array(own["center"]), np.array(own["scale"])
        h = bends.get(own["bend"], lambda u: u)
        blocks.append(np.where(own["bent"], h((z - c) / s) - h(-c / s), z))
    return np.concatenate(blocks, axis=1)


def test_core_of_several_maps_reads_the_columns_of_each(tmp_path):
    generator = torch.Generator().manual_seed(0)
    net = several_maps(generator)
    write_onnx_core(tmp_path / "core.onnx", net, list("abcde"))
    session = onnxruntime.InferenceSession(tmp_path / "core.onnx")
    notes = session.get_modelmeta().custom_metadata_map
    logs = ["log_tails of a", "log_tails of b", "c", "log_tails of e"]  # one map for both parts
    clipped = ["clipped of a", "clipped of b", "c", "clipped of d", "clipped of e"]
    assert json.loads(notes["columns"]) == [*"abcde", *logs, *clipped]
    x = 3 * torch.randn(50, 5, generator=generator, dtype=torch.float64)
    seen = mapped_by_hand(x.numpy(), json.loads(notes["maps"])).astype(np.float32)
    (found,) = session.run(["outputs"], {"x": seen})
    np.testing.assert_allclose(found, net(x).numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_file_of_several_maps_gives_what_the_networks_give(tmp_path):
    generator = torch.Generator().manual_seed(1)
    net = several_maps(generator)
    rows = np.random.default_rng(0).normal(5, 3, size=(60, 5))
    rows[:, 2] = rows[:, 2] > 5  # not bent
    rows[::7, 1] = np.nan
    codes = [NumberCode(1.0, 2.0, -10.0, 10.0, False)] * 5
    encoder = TableEncoder(tuple("abcde"), ("number",) * 5, tuple(codes))
    outcome = Outcome(scale=np.array([2.0, 3.0]), center=np.array([1.0, -1.0]))
    write_onnx(tmp_path / "model.onnx", net, encoder, outcome)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    columns = read_columns(pd.DataFrame(rows, columns=list("abcde")))
    (found,) = session.run(None, {name: rows[:, [k]] for k, name in enumerate("abcde")})
    expected = net(torch.from_numpy(encoder.encode(columns))).numpy() * [2, 3] + [1, -1]
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_file_has_named_inputs_and_says_nothing_of_its_origin(exported):
    path, session = exported
    assert {i.name: i.type for i in session.get_inputs()} == {
        "age in years (€)": "tensor(double)",
        "city": "tensor(string)",
        "member": "tensor(string)",
        "joined": "tensor(double)",
        "grade": "tensor(string)",
        "number": "tensor(double)",
        "same": "tensor(double)",
        "word": "tensor(string)",
    }
    assert all(i.shape == ["rows", 1] for i in session.get_inputs())
    content = path.read_bytes()
    assert not any(word in content for word in (b".py", b"site-packages", b"torch", b"/home"))
    assert list(path.parent.iterdir()) == [path]


def test_pruned_file_is_small(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 6))
    settings = {**QUICK, "width": 64, "max_steps": 150}
    model = PSiLONRegressor(**settings, prune=True).fit(x, x[:, 0])
    path = tmp_path / "model.onnx"
    assert deviation(model, x, session_of(model, path)) < TOLERANCE
    dense = 2 * 4 * (64 * 6 + 64 * 64 + 64)  # of two folds
    assert path.stat().st_size < 0.5 * dense


def test_array_has_numbered_inputs(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = PSiLONClassifier(**QUICK, calibrate=False).fit(x, x[:, 0] > 0)
    session = session_of(model, tmp_path / "model.onnx")
    assert [i.name for i in session.get_inputs()] == ["x0", "x1", "x2"]
    assert deviation(model, x, session) < TOLERANCE
    huge = np.array([[1e300, -1e300, 0.0], [1e12, 1.0, np.nan]])
    with pytest.warns(match="outside the range"):
        assert deviation(model, huge, session) < TOLERANCE


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
def test_differences_to_the_center_may_overflow(tmp_path):
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(-1e308, 1e307, 100), rng.normal(size=100)], axis=1)
    model = PSiLONRegressor(**QUICK).fit(x, x[:, 0] / 1e307 + x[:, 1])
    session = session_of(model, tmp_path / "model.onnx")
    rows = np.array([[8.1e307, 0.0], [1.7e308, 1.0], [7e307, 2.0], [np.nan, 0.0]])
    assert deviation(model, rows, session) < TOLERANCE
    assert len(np.unique(model.predict(rows))) == 4


def test_names_of_columns_may_be_those_of_outputs(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"label": rng.normal(size=50), "psilonnet.Cast.1": ["a", "b"] * 25})
    frame = frame.with_columns(x=pl.Series(["", "a", "b", "b", ""] * 10))
    model = PSiLONClassifier(**QUICK).fit(frame, frame["label"].to_numpy() > 0)
    session = session_of(model, tmp_path / "model.onnx")
    assert [o.name for o in session.get_outputs()] == ["label_", "probabilities"]
    label, found = session.run(None, onnx_inputs(frame, session))
    np.testing.assert_allclose(found, model.predict_proba(frame), rtol=TOLERANCE)
    np.testing.assert_array_equal(label, model.predict(frame))


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([False, True]), "b"),
        (np.array([3, 5], dtype=np.uint8), "i"),
        (np.array([0.0, 1.0]), "f"),
        (np.array(["a", "bc"]), "O"),
        (np.array(["a", "bc"], dtype=object), "O"),
        (np.array([2, 7], dtype=object), "i"),
    ],
)
def test_labels_keep_their_type(labels, kind):
    plain = _plain_labels(labels)
    assert plain.dtype.kind == kind
    assert plain.tolist() == labels.tolist()


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"labels.*Got int, str, such as 'a'"):
        _plain_labels(np.array([1, "a"], dtype=object))
    with pytest.raises(ValueError, match=r"64 bits.*Got int"):
        _plain_labels(np.array([1, 2**64 - 1], dtype=np.uint64))
    y = np.arange(40.0)
    frame = pd.DataFrame({"a": ["", "b", "c", None] * 10})
    with pytest.raises(ValueError, match=r"'a' has missing cells and empty words"):
        PSiLONRegressor(**QUICK).fit(frame, y).export_onnx(tmp_path / "model.onnx")
    with pytest.raises(ValueError, match=r"column 0 is ''"):
        PSiLONRegressor(**QUICK).fit(pd.DataFrame({"": y}), y).export_onnx(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_table_that_does_not_fit_is_refused(exported):
    session, frame = exported[1], later()
    with pytest.raises(ValueError, match=r"'city' is missing among"):
        onnx_inputs(frame.drop(columns="city"), session)
    with pytest.raises(ValueError, match=r"'city'.*takes tensor\(string\).*holds numbers"):
        onnx_inputs(frame.assign(city=1.0), session)
    for name, values, kind in (
        ("joined", 1.7e9, "number"),  # seconds, not days
        ("number", pd.Timestamp("2020-01-01"), "time"),
        ("number", pd.Timedelta(days=1), "duration"),
    ):
        said = rf"'{name}' must hold the same kind of values as in fit.*holds '{kind}' now"
        with pytest.raises(ValueError, match=said):
            onnx_inputs(frame.assign(**{name: values}), session)
    assert np.isnan(onnx_inputs(frame.assign(joined=None), session)["joined"]).all()
    empty = onnx_inputs(frame.assign(city=None), session)["city"]
    assert set(empty[:, 0]) == {""}


def test_missing_cells_are_no_empty_words_that_are_levels(tmp_path):
    frame = pd.DataFrame({"a": ["", "b", "c"] * 30, "x": np.linspace(0, 1, 90)})
    model = PSiLONRegressor(**QUICK).fit(frame, frame.x + (frame.a == ""))
    session = session_of(model, tmp_path / "model.onnx")
    assert deviation(model, frame, session) < TOLERANCE
    with pytest.raises(ValueError, match=r"as in column 'a'. Row 1 of it is missing: fill such"):
        onnx_inputs(frame.assign(a=["b", None, ""] * 30), session)


def test_missing_package_is_asked_for_by_name(fitted, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'psilonnet\[onnx\]'"):
        fitted.export_onnx(tmp_path / "model.onnx")


def test_export_is_silent(fitted, tmp_path, capfd, caplog):
    fitted.export_onnx(tmp_path / "model.onnx")
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


def test_real_tables(data_dir, tmp_path):
    listed = json.loads((data_dir / "datasets.json").read_text())
    names = TABLES.split(",")
    chosen = [t for t in listed if not t["extra"] and (TABLES == "all" or t["name"] in names)]
    worst = {}
    for table in chosen:
        frame = pd.read_parquet(data_dir / table["file"]).sample(800, random_state=0)
        x, y = frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()
        kind = PSiLONRegressor if table["task"] == "regression" else PSiLONClassifier
        settings = {"width": 32, "max_steps": 60, "learning_rate": 2e-2, "reg_strength": 1e-4}
        model = kind(**settings, random_state=0, verbose=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about columns of few values, and rows far outside
            model.fit(x[:300], y[:300])
            session = session_of(model, tmp_path / "model.onnx")
            worst[table["name"]] = deviation(model, x[300:], session)
    print(*(f"{value:.1e} {name}" for name, value in worst.items()), sep="\n")
    assert len(worst) == (len(names) if TABLES != "all" else 29)
    assert max(worst.values()) < TOLERANCE
