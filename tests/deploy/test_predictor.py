"""The exported predictor: the same numbers from every kind of table."""

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from deploy.messy_table import QUICK, exported, messy
from deploy.several_maps import several_maps
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Certifier, input_moves
from psilonnet.deploy import write_numpy_export
from psilonnet.deploy.predictor import Predictor
from psilonnet.tables import NumberCode, TableEncoder, read_columns


def assert_same_outputs(model, x, predictor):
    ours = model.predict_proba(x) if hasattr(model, "predict_proba") else model.predict(x)
    theirs = predictor.predict_proba(x) if hasattr(model, "predict_proba") else predictor.predict(x)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)
    if hasattr(model, "predict_proba"):
        assert (predictor.predict(x) == model.predict(x)).all()
    for method in ("global", "local"):
        assert_same_proofs(model, x, predictor, method)


def assert_same_proofs(model, x, predictor, method):
    if not hasattr(model, "predict_proba"):
        pair = (m.output_range(x, 0.1, method=method) for m in (predictor, model))
        for a, b in zip(*pair, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        return
    radius = model.certified_radius(x, method=method)
    found = predictor.certified_radius(x, method=method)
    np.testing.assert_allclose(found, radius, rtol=1e-6, atol=1e-12)
    for delta in (0.02, 0.3):
        stays = model.is_robust(x, delta, method=method)
        close = np.abs(radius - delta) < (1e-6 if method == "global" else 0.01) * delta
        assert (predictor.is_robust(x, delta, method=method) == stays)[~close].all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"designs": [Design(architecture="crelu")]},
        {"designs": [Design(architecture="resnet")], "depth": 3},
        {"designs": [Design(pieces=5)]},
        {"designs": [Design(columns="clipped")]},
        {"designs": [Design(columns="identity", directions="l2")], "cv": 3},
        {
            "designs": [Design(), Design(pieces=4, columns="clipped")],
            "selection": "accurate",
            "reg_strength": (1e-4, 1e-3),
        },
        {"prune": True, "max_steps": 300},
        {"prune": True, "designs": [Design(architecture="crelu")]},
    ],
    ids=str,
)
def test_export_predicts_and_certifies_as_the_model_does(settings, tmp_path):
    X, y = messy()
    labels = np.array(["low", "high"])[(y > np.median(y)).astype(int)]
    for model, target in ((PSiLONRegressor, y), (PSiLONClassifier, labels)):
        fitted = model(**{**QUICK, **settings}).fit(X, target)
        unseen = messy(seed=1)[0]
        unseen.loc[0, "town"] = "never seen"
        unseen.loc[1, "town"] = None
        assert_same_outputs(fitted, unseen, exported(fitted, tmp_path / model.__name__))


def test_export_of_many_classes_and_many_targets(tmp_path):
    X, y = messy()
    classes = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    fitted = PSiLONClassifier(**QUICK).fit(X, classes)
    assert_same_outputs(fitted, X, exported(fitted, tmp_path / "classes"))
    fitted = PSiLONRegressor(**QUICK).fit(X, np.stack([y, -y], axis=1))
    assert_same_outputs(fitted, X, exported(fitted, tmp_path / "targets"))


def test_export_reads_every_kind_of_table(tmp_path):
    X, y = messy()
    model = PSiLONRegressor(**QUICK).fit(X, y)
    predictor = exported(model, tmp_path)
    expected = model.predict(X)
    rows = X.astype(object).where(X.notna(), None)
    as_dicts = rows.to_dict(orient="records")
    tables = {
        "polars": pl.from_pandas(X),
        "arrow": pa.Table.from_pandas(X),
        "dict": {name: X[name] for name in X},
        "dicts": as_dicts,
        "rows": [list(row.values()) for row in as_dicts],
        "more columns, other order": X.assign(other=1)[["other", *X.columns[::-1]]],
    }
    for name, table in tables.items():
        np.testing.assert_allclose(predictor.predict(table), expected, rtol=1e-9, err_msg=name)


def test_export_of_plain_numbers_reads_arrays(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    model = PSiLONRegressor(**QUICK).fit(X, X[:, 0])
    predictor = exported(model, tmp_path)
    np.testing.assert_allclose(predictor.predict(X), model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(predictor.predict(X.tolist()), model.predict(X), rtol=1e-9)
    X[0, 1] = np.nan  # never missing in training
    np.testing.assert_allclose(predictor.predict(X), model.predict(X), rtol=1e-9)


def test_words_in_bytes_are_read_as_the_model_reads_them(tmp_path):
    words = np.array([b"a", b"b", b"c", b"d"] * 30)[:, None]
    model = PSiLONRegressor(**QUICK).fit(words, np.arange(120) % 4)
    predictor = exported(model, tmp_path)
    np.testing.assert_allclose(predictor.predict(words), model.predict(words), rtol=1e-9)
    assert np.ptp(predictor.predict(words)) > 0.1


def test_interval_in_own_units(tmp_path):
    X, y = messy()
    model = PSiLONRegressor(**QUICK).fit(X, y)
    predictor = exported(model, tmp_path)
    delta = {"size": 2.0, "when": datetime.timedelta(days=3)}
    for a, b in zip(
        predictor.output_range(X, delta), model.output_range(X, delta, method="global"), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (lambda x: x.drop(columns="age"), "Missing: \\['age'\\]"),
        (lambda x: x.assign(age="old"), "'age' must hold numbers"),
        (lambda x: x.assign(when="today"), "'when' must hold dates"),
        (lambda x: x.assign(size=np.inf), "Column 'size' contains infinity in row 0. Replace"),
        (lambda x: {**x.to_dict("list"), "age": [10**400] * 120}, "'age' contains infinity"),
        (
            lambda x: {**x.to_dict("list"), "age": [[1.0]] * 120},
            r"'age' must hold numbers.*\[1.0\]",
        ),
        (lambda x: {**x.to_dict("list"), "age": [[1], *[[1, 2]] * 119]}, "'age' must hold numbers"),
        (lambda x: {**x.to_dict("list"), "age": [{}] * 120}, "'age' must hold numbers"),
        (lambda x: {**x.to_dict("list"), "when": [[1]] * 120}, "'when' must hold dates"),
        (lambda x: {**x.to_dict("list"), "town": [["Aa"]] * 120}, r"'town' must hold words.*'Aa'"),
        (lambda x: {**x.to_dict("list"), "town": [{"a": 1}] * 120}, "'town' must hold words"),
        (lambda x: np.ones((3, 2)), "7 columns"),
        (lambda x: [[1, 2], [3]], "equal length"),
        (lambda x: x[:0], "at least one row"),
        (lambda x: x.to_numpy()[:0], "at least one row"),
        (lambda x: [], "at least one row"),
        (lambda x: None, "rows of equal length. Got one of type NoneType"),
        (lambda x: iter(x.to_numpy()), "rows of equal length. Got one of type .*iterator"),
        (lambda x: x["age"], "rows of equal length. Got one of type Series"),
    ],
)
def test_bad_tables_are_refused(table, said, tmp_path):
    X, y = messy()
    predictor = exported(PSiLONRegressor(**QUICK).fit(X, y), tmp_path)
    with pytest.raises(ValueError, match=said):
        predictor.predict(table(X))


def test_tables_that_would_be_misread_are_refused(tmp_path):
    X, y = messy()
    predictor = exported(PSiLONRegressor(**QUICK).fit(X, y), tmp_path)
    with pytest.raises(TypeError, match=r"must be in memory. Got a lazy LazyFrame: call its coll"):
        predictor.predict(pl.from_pandas(X).lazy())
    twice = pd.concat([X, X[["size"]]], axis=1)
    with pytest.raises(ValueError, match=r"names must be unique.*more than once: \['size'\]"):
        predictor.predict(twice)
    with pytest.raises(ValueError, match=r"names must be unique.*more than once: \['size'\]"):
        predictor.predict(pa.table([*map(pa.array, X.to_dict("list").values()), [1.0] * 120],
                                   names=[*X.columns, "size"]))  # fmt: skip
    for wrong in ({"town": ["Aa"]}, {"size": [1.0]}):  # would hold for all rows
        with pytest.raises(ValueError, match=r"as many cells.*Got 1 to 120"):
            predictor.predict({**X.to_dict("list"), **wrong})
    with pytest.raises(ValueError, match=r"'flag' must hold words, as in training. Got 1"):
        predictor.predict(X.assign(flag=1))
    with pytest.raises(ValueError, match=r"'town' must hold words, as in training. Got 2.5"):
        predictor.predict(X.assign(town=2.5))
    days = pd.date_range("2024-01-01", periods=120)
    for wrong in (days, days - days[0], days.date):
        with pytest.raises(ValueError, match="'town' must hold words, as in training"):
            predictor.predict(X.assign(town=wrong))
        with pytest.raises(ValueError, match="'size' must hold numbers, as in training"):
            predictor.predict(X.assign(size=wrong))


def test_numbers_that_are_levels_are_read(tmp_path):
    numbers = np.arange(120) % 4
    frame = pd.DataFrame({"store": pd.Categorical(numbers), "size": np.linspace(0, 1, 120)})
    model = PSiLONRegressor(**QUICK).fit(frame, numbers)
    predictor = exported(model, tmp_path)
    np.testing.assert_allclose(predictor.predict(frame), model.predict(frame), rtol=1e-9)
    rows = [{"store": 3, "size": 0.5}, {"store": 77, "size": 0.5}]
    unknown = pd.DataFrame({"store": pd.Categorical([3, 77]), "size": 0.5})  # half is not most
    np.testing.assert_allclose(predictor.predict(rows), model.predict(unknown), rtol=1e-9)


def test_missing_cells_of_arrow_dictionaries_are_missing(tmp_path):
    X, y = messy()
    X = X.assign(kind=X.kind.astype("category"), town=X.town.astype("category"))
    model = PSiLONRegressor(**QUICK).fit(X, y)
    table = pa.Table.from_pandas(X)
    assert table["kind"].null_count > 10
    found = exported(model, tmp_path).predict(table)
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-9)


def test_masked_cells_are_missing(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = PSiLONRegressor(**QUICK).fit(X, X[:, 0])
    masked = np.ma.masked_array(X, mask=np.random.default_rng(1).random(X.shape) < 0.3)
    found = exported(model, tmp_path).predict(masked)
    np.testing.assert_allclose(found, model.predict(masked), rtol=1e-9)


def said_of(predict, table, name="OutOfRangeWarning"):
    with pytest.warns(UserWarning, match="training rows|levels of fit") as said:
        predict(table)
    assert len(said) == 1
    assert type(said[0].message).__name__ == name
    return str(said[0].message)


@pytest.mark.parametrize("bend", ["identity", "clipped", "log_tails"])
def test_far_rows_are_named_as_the_model_names_them(bend, tmp_path):
    X, y = messy()
    model = PSiLONClassifier(**{**QUICK, "designs": [Design(columns=bend)]}).fit(X, y > y.mean())
    predictor = exported(model, tmp_path)
    size, width = X["size"], np.ptp(X["size"])
    far = X.assign(size=[size.max() + 1.01 * width, *size[1:]], age=[*X.age[:-2], -1e300, 1e300])
    for name in ("predict", "predict_proba", "decision_function"):
        assert said_of(getattr(predictor, name), far) == said_of(getattr(model, name), far)
    far["when"] = pd.Timestamp("2099-01-01")
    assert "'size' (1 rows), 'age' (2 rows), 'when' (120 rows)" in said_of(predictor.predict, far)
    near = X.assign(size=[size.max() + 0.99 * width, size.min() - 0.99 * width, *size[2:]])
    predictor.predict(near)  # silent, as the model is
    model.predict(near)
    predictor.certified_radius(far)


@pytest.mark.filterwarnings("ignore:Some rows lie farther outside")
def test_ranges_hold_where_the_difference_to_the_center_overflows(tmp_path):
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(-1e308, 1e307, 200), "b": rng.normal(size=200)})
    model = PSiLONRegressor(**QUICK).fit(x, x.a / 1e307 + x.b)
    code = model.encoder_.codes[0]
    edge = np.finfo(float).max + code.center  # beyond it, differences overflow
    rows = pd.DataFrame({"a": [edge * (1 - 1e-6)], "b": [0.0]})
    moved = rows.assign(a=rows.a + code.scale / 20)
    predictor = exported(model, tmp_path)
    for method in ("global", "local"):
        ours = model.output_range(rows, {"a": code.scale / 10}, method=method)
        theirs = predictor.output_range(rows, {"a": code.scale / 10}, method=method)
        np.testing.assert_allclose(theirs, ours, rtol=1e-9)
        assert ours[0] < model.predict(moved) < ours[1]
        assert theirs[0] < predictor.predict(moved) < theirs[1]


def test_far_rows_of_a_long_array_are_counted_together(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    model = PSiLONRegressor(**QUICK).fit(X, X[:, 0])
    X[::10, 1] = 1e6
    X[5, 0] = np.nan
    predictor = exported(model, tmp_path)
    assert said_of(predictor.predict, X) == said_of(model.predict, X)
    assert said_of(predictor.predict, X).endswith("Columns: 'x1' (300 rows).")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = [predictor.predict(X[k : k + 100]) for k in range(0, 3000, 100)]
        np.testing.assert_allclose(predictor.predict(X), np.concatenate(parts), rtol=1e-12)


def test_wrong_questions_and_formats_are_refused(tmp_path):
    X, y = messy()
    predictor = exported(PSiLONRegressor(**QUICK).fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="regressor"):
        predictor.predict_proba(X)
    with pytest.raises(ValueError, match="output_range"):
        predictor.certified_radius(X)
    with pytest.raises(ValueError, match="'delta'"):
        predictor.output_range(X, {"town": 1.0})
    for wrong in (-1.0, True, datetime.timedelta(1), np.timedelta64(1, "D"), "any", [1.0] * 7):
        with pytest.raises(ValueError, match="at least 0"):
            predictor.output_range(X, wrong)
    for name, wrong in (
        ("size", datetime.timedelta(days=1)),
        ("size", "any"),
        ("size", np.timedelta64(1, "D")),
        ("when", -1),
        ("when", np.timedelta64(1, "M")),
    ):
        with pytest.raises(ValueError, match=f"of column '{name}' must be .* at least 0"):
            predictor.output_range(X, {name: wrong})
    with pytest.raises(ValueError, match=r"'method' must be one of .*Got 'linear'"):
        predictor.output_range(X, 0.1, method="linear")
    for method in ("global", "local"):
        low, high = predictor.output_range(X, {"size": 1e308}, method=method)
        assert (low < high).all()
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        Predictor(tmp_path)
    with pytest.raises(FileNotFoundError, match="no exported model in"):
        Predictor(tmp_path / "nowhere")


def test_export_reads_decimals_and_columns_that_are_not_used(tmp_path):
    table = pl.DataFrame({"a": pl.Series(["1.50", "2.25"] * 40).cast(pl.Decimal(10, 2))})
    model = PSiLONRegressor(**QUICK).fit(table.with_columns(e=pl.lit(1.0)), np.arange(80.0))
    predictor = exported(model, tmp_path)
    words = table.with_columns(e=pl.lit("anything"))
    np.testing.assert_allclose(predictor.predict(words), model.predict(words), rtol=1e-9)
    with pytest.raises(ValueError, match="Put one row in a list"):
        predictor.predict({"a": 1.5, "e": 1.0})


def test_where_nothing_moves_the_radius_is_that_of_the_model(tmp_path):
    words = np.random.default_rng(0).choice(["x", "y", "z"], (60, 2)).astype(object)
    model = PSiLONClassifier(**QUICK).fit(words, words[:, 0] == "x")
    with pytest.warns(UserWarning, match="this table has none"):
        radius = model.certified_radius(words, method="global")
    np.testing.assert_array_equal(exported(model, tmp_path).certified_radius(words), radius)


def exported_maps(folder):
    """Export an average of networks behind several maps, and return it with its encoder."""
    net = several_maps(torch.Generator().manual_seed(3))
    codes = [NumberCode(1.0, 2.0, -100.0, 100.0, False)] * 5
    encoder = TableEncoder(tuple("abcde"), ("number",) * 5, tuple(codes))
    target = {"center": [0.0, 0.0], "scale": [1.0, 1.0]}
    manifest = {"encoder": encoder.to_dict(), "target": target, "one_target": False}
    write_numpy_export(folder, manifest, net, input_moves(net, torch.eye(2).double()))
    return net, encoder, Predictor(folder)


def precise(part, x):
    """Return the outputs of each network of a part in 64 bits of mantissa, by the definitions."""
    columns, wide = part.columns, lambda t: t.numpy().astype(np.longdouble)
    center, scale, z = wide(columns.center), wide(columns.scale), x[:, part.inputs.numpy()]
    h = {"log_tails": lambda u: 3 * np.arcsinh(u / 3), "clipped": lambda u: u / np.hypot(1, u / 3)}
    h = h.get(columns.bend, lambda u: u)
    mapped = np.where(columns.bent.numpy(), h((z - center) / scale) - h(-center / scale), z)
    outputs = []
    for m in range(part.members):
        v = mapped
        for layer in part.net.layers:
            if layer.split == "relu":
                v = np.maximum(v, 0)[:, None]
            elif layer.edges is None:
                v = v[:, None]
            else:
                e = np.pad(wide(layer.edges[m]), ((1, 1), (0, 0)), constant_values=np.inf)
                e[0] = -np.inf
                v = np.clip(v[:, None], e[:-1], e[1:]) - np.clip(np.longdouble(0), e[:-1], e[1:])
            v = np.einsum("rsi,osi->ro", v, wide(layer.weight[m])) + wide(layer.bias[m])
        outputs.append(v)
    return outputs


def test_export_of_several_maps_is_the_average_up_to_its_own_bound_of_rounding(tmp_path):
    net, _, predictor = exported_maps(tmp_path)
    for size in (1.0, 1e3, 1e9):
        x = size * np.random.default_rng(0).normal(size=(40, 5))
        exact = sum(
            np.longdouble(weight) * output
            for part in net.parts
            for weight, output in zip(part.weight.tolist(), precise(part, x), strict=True)
        )
        found = predictor.raw(x)
        np.testing.assert_allclose(found, net(torch.from_numpy(x)).numpy(), rtol=1e-12)
        off, bound = np.abs(found - exact).max(axis=1), predictor._rounding(x, np.zeros(40))
        assert (off <= bound).all()
        assert (bound <= 1e-11 * size).all()


def test_ranges_behind_several_maps_hold_and_are_those_of_the_model(tmp_path):
    net, encoder, predictor = exported_maps(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(1, 8, size=(30, 5))
    delta = {"a": 0.5, "e": 3.0}
    columns = read_columns(pd.DataFrame(rows, columns=list("abcde")))
    wide = predictor.output_range(rows, delta)
    low, high = predictor.output_range(rows, delta, method="local")
    assert ((wide[0] <= low) & (high <= wide[1])).all()
    assert (high - low).sum() < 0.9 * (wide[1] - wide[0]).sum()
    for method, found in (("global", wide), ("local", (low, high))):
        theirs = Certifier(net, encoder).output_range(columns, delta, method=method)
        np.testing.assert_allclose(found[0], theirs[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found[1], theirs[1], rtol=1e-9, atol=1e-12)
    for _ in range(200):
        moved = rows + rng.choice([-1, 1], (30, 5)) * [0.5, 0, 0, 0, 3.0] * rng.random() ** 0.1
        found = predictor.predict(moved)
        assert ((low <= found) & (found <= high)).all()


def test_unknown_levels_are_named_as_the_model_names_them(tmp_path):
    X, y = messy()
    model = PSiLONRegressor(**QUICK).fit(X, y)
    predictor = exported(model, tmp_path)
    other = X.assign(town=[None, *X.town[1:50], *["Zz"] * 70], kind="w")
    wanted = said_of(model.predict, other, "LossWarning")
    assert "'town' (such as 'Zz'), 'kind' (such as 'w')" in wanted
    assert said_of(predictor.predict, other, "LossWarning") == wanted
    predictor.predict(X.assign(town=[*X.town[:60], *["Zz"] * 60]))
