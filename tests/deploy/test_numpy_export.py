"""The exported predictor: the same numbers, and nothing but NumPy."""

import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy.predictor import Predictor

QUICK = {"width": 16, "depth": 2, "max_steps": 40, "knots": 0, "random_state": 0, "verbose": False}


def messy(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 9, rows),
            "age": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(1, 90, rows)),
            "town": rng.choice(["Aa", "Bb", "Cc"], rows),
            "flag": rng.random(rows) < 0.5,
            "kind": pd.Series(rng.choice(["u", "v", None], rows), dtype="object"),
            "when": days,
            "same": np.ones(rows),
        }
    )
    y = frame["size"] / 9 + (frame["town"] == "Bb") + rng.normal(0, 0.2, rows)
    return frame, y.to_numpy()


def exported(model, folder):
    model.export_numpy(folder)
    return Predictor(folder)


def assert_same_outputs(model, x, predictor):
    ours = model.predict_proba(x) if hasattr(model, "predict_proba") else model.predict(x)
    theirs = predictor.predict_proba(x) if hasattr(model, "predict_proba") else predictor.predict(x)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)
    if hasattr(model, "predict_proba"):
        assert (predictor.predict(x) == model.predict(x)).all()
        radius = model.certified_radius(x)
        np.testing.assert_allclose(predictor.certified_radius(x), radius, rtol=1e-6, atol=1e-12)
        for delta in (0.02, 0.3):
            stays = model.is_robust(x, delta)
            close = np.abs(radius - delta) < 1e-6 * delta
            assert (predictor.is_robust(x, delta) == stays)[~close].all()
    else:
        for a, b in zip(predictor.output_range(x, 0.1), model.output_range(x, 0.1), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"architecture": "crelu"},
        {"architecture": "resnet", "depth": 3},
        {"knots": 5},
        {"scaling": "robust"},
        {"scaling": "log_tails"},
        {"n_members": 3},
        {"knots": (0, 4), "selection": "average", "reg_strength": (1e-4, 1e-3)},
        {"prune": True, "max_steps": 300},
        {"prune": True, "n_members": 2, "architecture": "crelu"},
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
    for a, b in zip(predictor.output_range(X, delta), model.output_range(X, delta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (lambda x: x.drop(columns="age"), "Missing: \\['age'\\]"),
        (lambda x: x.assign(age="old"), "'age' must hold numbers"),
        (lambda x: x.assign(when="today"), "'when' must hold dates"),
        (lambda x: x.assign(size=np.inf), "contains infinity"),
        (lambda x: np.ones((3, 2)), "7 columns"),
        (lambda x: [[1, 2], [3]], "equal length"),
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


def test_numbers_that_are_levels_are_read(tmp_path):
    numbers = np.arange(120) % 4
    frame = pd.DataFrame({"store": pd.Categorical(numbers), "size": np.linspace(0, 1, 120)})
    model = PSiLONRegressor(**QUICK).fit(frame, numbers)
    predictor = exported(model, tmp_path)
    np.testing.assert_allclose(predictor.predict(frame), model.predict(frame), rtol=1e-9)
    rows = [{"store": 3, "size": 0.5}, {"store": 77, "size": 0.5}]
    unknown = pd.DataFrame({"store": pd.Categorical([3, 77]), "size": 0.5})
    np.testing.assert_allclose(predictor.predict(rows), model.predict(unknown), rtol=1e-9)


def test_masked_cells_are_missing(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = PSiLONRegressor(**QUICK).fit(X, X[:, 0])
    masked = np.ma.masked_array(X, mask=np.random.default_rng(1).random(X.shape) < 0.3)
    found = exported(model, tmp_path).predict(masked)
    np.testing.assert_allclose(found, model.predict(masked), rtol=1e-9)


def said_of(predict, table):
    with pytest.warns(UserWarning, match="farther outside the range of the training rows") as said:
        predict(table)
    assert len(said) == 1
    assert type(said[0].message).__name__ == "OutOfRangeWarning"
    return str(said[0].message)


@pytest.mark.parametrize("scaling", ["standard", "robust", "log_tails"])
def test_far_rows_are_named_as_the_model_names_them(scaling, tmp_path):
    X, y = messy()
    model = PSiLONClassifier(**QUICK, scaling=scaling).fit(X, y > y.mean())
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


def test_far_rows_of_a_long_array_are_counted_together(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    model = PSiLONRegressor(**QUICK).fit(X, X[:, 0])
    X[::10, 1] = 1e6
    X[5, 0] = np.nan
    predictor = exported(model, tmp_path)
    assert said_of(predictor.predict, X) == said_of(model.predict, X)
    assert said_of(predictor.predict, X).endswith("Columns: 'x1' (300 rows).")


def test_wrong_questions_and_formats_are_refused(tmp_path):
    X, y = messy()
    predictor = exported(PSiLONRegressor(**QUICK).fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="regressor"):
        predictor.predict_proba(X)
    with pytest.raises(ValueError, match="output_range"):
        predictor.certified_radius(X)
    with pytest.raises(ValueError, match="'delta'"):
        predictor.output_range(X, {"town": 1.0})
    for wrong in (-1.0, True, datetime.timedelta(days=1), "any", [1.0] * 7):
        with pytest.raises(ValueError, match="at least 0"):
            predictor.output_range(X, wrong)
    for name, wrong in (("size", datetime.timedelta(days=1)), ("size", "any"), ("when", -1)):
        with pytest.raises(ValueError, match=f"of column '{name}' must be .* at least 0"):
            predictor.output_range(X, {name: wrong})
    low, high = predictor.output_range(X, {"size": 1e308})
    assert (low < high).all()
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        Predictor(tmp_path)


def test_pruned_export_is_small(tmp_path):
    X, y = messy()
    sizes = []
    for prune in (False, True):
        folder = tmp_path / str(prune)
        model = PSiLONRegressor(**{**QUICK, "width": 128, "max_steps": 400}, prune=prune)
        model.fit(X, y).export_numpy(folder)
        sizes.append((folder / "weights.npz").stat().st_size)
    assert sizes[1] < 0.25 * sizes[0]


def two_models():
    X, y = messy()
    return [PSiLONRegressor(**QUICK).fit(X, target) for target in (y, -y)], X


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


THREE = ["manifest.json", "predictor.py", "weights.npz"]


@contextmanager
def killed_at_file_operation(number):
    """Kill this process, which must be a child, at the given open, rename or removal of a file."""
    left = [number]

    def hook(event, args):
        if event in ("open", "os.rename", "os.remove"):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    yield


def export_and_die(model, folder, number):
    """Export in a child that is killed at one of its file operations; tell whether it was."""
    child = os.fork()
    if child == 0:
        try:
            with killed_at_file_operation(number):
                model.export_numpy(folder)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a child that it forks")
def test_killed_export_leaves_the_old_model_or_the_new_one(tmp_path):
    (old, new), X = two_models()
    folder = tmp_path / "exported"
    new.export_numpy(tmp_path / "other")  # both are computed before the first fork
    seen = []
    for number in range(1, 100):
        old.export_numpy(folder)
        assert names_in(folder) == THREE
        killed = export_and_die(new, folder, number)
        found = Predictor(folder).predict(X)
        seen.append("old" if np.allclose(found, old.predict(X), rtol=1e-9) else "new")
        np.testing.assert_allclose(found, (old if seen[-1] == "old" else new).predict(X), rtol=1e-9)
        if not killed:
            break
    assert not killed
    assert seen == sorted(seen, reverse=True)  # once it is the new one, it stays that
    assert seen.count("new") > 1  # also before the end
    assert names_in(folder) == THREE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a child that it forks")
def test_killed_first_export_is_no_model_or_a_whole_one(tmp_path):
    (model, _), X = two_models()
    model.export_numpy(tmp_path / "other")
    for number in range(1, 100):
        folder = tmp_path / str(number)
        killed = export_and_die(model, folder, number)
        if (folder / "manifest.json").exists():
            np.testing.assert_allclose(Predictor(folder).predict(X), model.predict(X), rtol=1e-9)
        if not killed:
            break
    assert names_in(folder) == THREE


@contextmanager
def files_of_at_most(size):
    """Let every write behind so many bytes of a file fail, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1000, 12_000])
def test_failed_export_leaves_what_was_there(size, tmp_path):
    (old, new), X = two_models()
    old.export_numpy(tmp_path / "exported")
    for folder in ("exported", "new"):
        with pytest.raises(OSError, match="File too large"), files_of_at_most(size):
            new.export_numpy(tmp_path / folder)
    assert names_in(tmp_path) == ["exported"]
    assert names_in(tmp_path / "exported") == THREE
    found = Predictor(tmp_path / "exported").predict(X)
    np.testing.assert_allclose(found, old.predict(X), rtol=1e-9)


def test_export_leaves_other_files_alone(tmp_path):
    (first, second), _ = two_models()
    (tmp_path / "notes.txt").write_text("mine")
    for model in (first, second):
        model.export_numpy(tmp_path)
    assert names_in(tmp_path) == sorted([*THREE, "notes.txt"])


def test_weights_of_another_export_are_refused(tmp_path):
    (first, second), _ = two_models()
    first.export_numpy(tmp_path / "a")
    second.export_numpy(tmp_path / "b")
    shutil.copy(tmp_path / "b" / "weights.npz", tmp_path / "a")  # a copy that was stopped half-way
    with pytest.raises(ValueError, match=r"weights.npz.*another.*copy the whole folder"):
        Predictor(tmp_path / "a")
    (tmp_path / "a" / "weights.npz").unlink()
    with pytest.raises(ValueError, match=r"weights.npz.*missing.*copy the whole folder"):
        Predictor(tmp_path / "a")


def environment_with_numpy(folder):
    """Make a virtual environment, lend it this one's NumPy, and return its Python."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    home = Path(np.__file__).parents[1]
    for part in home.glob("numpy*"):
        (packages / part.name).symlink_to(part)
    return str(folder / "venv" / "bin" / "python")


def test_export_needs_numpy_only(tmp_path):
    """An environment of its own that has NumPy, and nothing else that is not Python's."""
    X, y = messy()
    model = PSiLONClassifier(**QUICK).fit(X, y > y.mean())
    model.export_numpy(tmp_path / "model")
    X.to_json(tmp_path / "rows.json", orient="records", date_format="iso")
    script = tmp_path / "use.py"
    script.write_text(
        "import sys, json, datetime\n"
        "from importlib.util import find_spec\n"
        "for name in ('psilonnet', 'torch', 'sklearn', 'pandas', 'narwhals'):\n"
        "    assert find_spec(name) is None, name\n"
        "sys.path.insert(0, sys.argv[1] + '/model')\n"
        "from predictor import Predictor\n"
        "rows = json.load(open(sys.argv[1] + '/rows.json'))\n"
        "for row in rows:\n"
        "    row['when'] = datetime.datetime.fromisoformat(row['when'][:10])\n"
        "model = Predictor(sys.argv[1] + '/model')\n"
        "print(json.dumps([model.predict_proba(rows)[:, 1].tolist(),"
        " model.certified_radius(rows).tolist()]))\n"
    )
    done = subprocess.run(
        [environment_with_numpy(tmp_path), "-I", str(script), str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shares, radii = json.loads(done.stdout)
    np.testing.assert_allclose(shares, model.predict_proba(X)[:, 1], rtol=1e-9)
    np.testing.assert_allclose(radii, model.certified_radius(X), rtol=1e-6, atol=1e-12)


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
        radius = model.certified_radius(words)
    np.testing.assert_array_equal(exported(model, tmp_path).certified_radius(words), radius)
