"""One model per group: the same models as one by one, files, index, resumption, failures."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import psilonnet
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators.together import fit_together
from psilonnet.scale import fit_many, predict_many
from psilonnet.scale import many as many_module
from psilonnet.scale.keys import groups_of, key_column, key_name
from psilonnet.scale.many import plan_tasks
from psilonnet.scale.model_folder import ModelFolder
from psilonnet.tables import OutOfRangeWarning

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
ONE = {**QUICK, "knots": 0, "selection": "best", "scaling": "standard"}  # no near ties
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, knots=0)


def stores(groups=5, rows=30, seed=0):
    """Return a frame of stores whose prices depend on size and town in their own ways."""
    rng = np.random.default_rng(seed)
    n = groups * rows
    store = np.repeat([f"store {k}/../é" for k in range(groups)], rows)
    size, town = rng.normal(size=n), rng.choice(["a", "b"], n)
    slope = np.repeat(np.arange(1.0, groups + 1), rows)
    frame = pd.DataFrame({"store": store, "size": size, "town": town, "y": slope * size})
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def index_of(path):
    return pd.read_parquet(path).set_index("group").sort_index()


@pytest.mark.parametrize(
    "estimator",
    [
        FIXED,
        PSiLONRegressor(**QUICK, knots=3, prune=True, n_members=2, reg_strength=1e-3),
        PSiLONClassifier(**QUICK, architecture="resnet", reg_strength=1e-3),
        PSiLONClassifier(**ONE, reg_strength=np.geomspace(1e-4, 1, 9)),
        PSiLONRegressor(**ONE, validation=3),
        PSiLONRegressor(**QUICK, reg_strength=(1e-3, 1e-1)),
    ],
    ids=[
        "fixed",
        "knots, pruned members",
        "resnet classifier",
        "narrowed grid",
        "folds",
        "average",
    ],
)
def test_models_fitted_together_are_those_fitted_alone(estimator, monkeypatch):
    monkeypatch.setattr("psilonnet.estimators.choosing.SHORT", 20)  # narrow the grid of strengths
    rng = np.random.default_rng(0)
    tables = []
    for n in (40, 60, 41):
        x = rng.normal(size=(n, 3))
        y = x[:, 0] + np.abs(x[:, 1])
        tables.append((x, y > 0.5 if isinstance(estimator, PSiLONClassifier) else y))
    together = [clone(estimator) for _ in tables]
    assert fit_together(together, tables) == [None] * 3
    for model, (x, y) in zip(together, tables, strict=True):
        alone = clone(estimator).fit(x, y)
        assert model.reg_strength_ == alone.reg_strength_
        assert model.lipschitz_bound_ == pytest.approx(alone.lipschitz_bound_, rel=1e-2)
        name = "predict_proba" if isinstance(estimator, PSiLONClassifier) else "predict"
        np.testing.assert_allclose(getattr(model, name)(x), getattr(alone, name)(x), atol=2e-2)
        assert model.history_.keys() == alone.history_.keys()
        np.testing.assert_allclose(
            model.history_["train_loss"], alone.history_["train_loss"], rtol=2e-2, atol=1e-3
        )
        if alone.path_ is not None:
            assert model.path_["steps"] == alone.path_["steps"]
            assert model.held_out_score_ == pytest.approx(alone.held_out_score_, abs=2e-2)


def test_larger_groups_are_fitted_as_alone_to_the_last_bit():
    x = np.random.default_rng(0).normal(size=(60, 2))
    estimator = clone(FIXED).set_params(batch_size=32)
    models = [clone(estimator) for _ in range(2)]
    fit_together(models, [(x, x[:, 0]), (x, x[:, 1])])
    assert (models[1].predict(x) == clone(estimator).fit(x, x[:, 1]).predict(x)).all()


def test_group_that_diverges_takes_nobody_with_it():
    x = np.random.default_rng(0).normal(size=(30, 2))
    spoiled = np.where(np.arange(30) == 3, 1e30, x[:, 0])
    models = [clone(FIXED) for _ in range(3)]
    errors = fit_together(models, [(x, x[:, 0]), (x, spoiled), (x, x[:, 1])])
    assert [type(error).__name__ for error in errors] == ["NoneType", "DivergedError", "NoneType"]
    assert models[2].score(x, x[:, 1]) > 0.5


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_each_group_has_its_model_and_its_line(convert, tmp_path):
    frame = stores()
    table = convert(frame)
    path = fit_many(
        table, by="store", target="y", estimator=FIXED, out=tmp_path / "m", progress=False
    )
    index = index_of(path)
    assert list(index.columns) == [
        "rows", "score", "bound", "sparsity", "path", "seconds", "error", "digest",
    ]  # fmt: skip
    assert index.index.tolist() == sorted(frame.store.unique())
    assert (index.rows == 30).all()
    assert index.error.isna().all()
    assert index.score.isna().all()  # nothing was held out
    predictions = predict_many(table, by="store", models=tmp_path / "m")
    for store, line in index.iterrows():
        own = (frame.store == store).to_numpy()
        model = psilonnet.load(tmp_path / "m" / line.path)
        assert model.lipschitz_bound_ == line.bound
        np.testing.assert_array_equal(
            model.predict(frame.loc[own, ["size", "town"]]), predictions[own]
        )
    assert not (tmp_path / "m" / "work").exists()


def test_second_call_fits_only_what_is_missing(tmp_path, monkeypatch):
    frame = stores(groups=6)
    fit = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    first = index_of(fit_many(frame[frame.store < "store 3"], **fit))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("models/**/*.psilon")}
    monkeypatch.setattr(many_module, "GROUPS_PER_TASK", 2)  # another plan changes nothing
    both = index_of(fit_many(frame, **fit))
    assert len(both) == 6
    pd.testing.assert_frame_equal(both.loc[first.index], first)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    calls = []
    monkeypatch.setattr(many_module, "run_cells", lambda *a, **k: calls.append(a))
    pd.testing.assert_frame_equal(index_of(fit_many(frame, **fit)), both)
    assert calls == []
    with pytest.raises(ValueError, match="begun with other parameters: use another folder"):
        fit_many(frame, **{**fit, "estimator": clone(FIXED).set_params(width=8)})


OTHER_ROWS = {
    "target": lambda f: f.assign(y=-f.y),
    "a number": lambda f: f.assign(size=f["size"].where(f.index != 7, 0.5)),
    "a number missing": lambda f: f.assign(size=f["size"].where(f.index != 7)),
    "a word": lambda f: f.assign(town=f.town.where(f.index != 7, "c")),
    "a word missing": lambda f: f.assign(town=f.town.where(f.index != 7)),
    "two columns swapped": lambda f: f.assign(size=f["y"], y=f["size"]),
    "words for numbers": lambda f: f.assign(size=f["size"].astype(str)),
    "a day for a number": lambda f: f.assign(size=pd.to_datetime(f["size"], unit="D")),
    "a row more": lambda f: pd.concat([f, f[7:8]]),
    "a row less": lambda f: f.drop(index=7),
    "a row in another group": lambda f: f.assign(store=f.store.where(f.index != 7, "store 0/../é")),
}


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_models_of_other_rows_are_not_taken_for_those_of_these(name, tmp_path):
    frame = stores(groups=2, rows=20)
    frame.loc[7, "store"] = "store 1/../é"
    fit = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    fit_many(frame, **fit)
    before = predict_many(frame, by="store", models=tmp_path)
    said = r"rows that it was fitted to.* rows of [12] of 2 such.* 'store [01].*use another folder"
    with pytest.raises(ValueError, match=said):
        fit_many(OTHER_ROWS[name](frame), **fit)
    np.testing.assert_array_equal(predict_many(frame, by="store", models=tmp_path), before)


def every_kind(rows=60):
    """Return a table with columns of every kind, some of their cells missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "key": np.resize([1, 2], rows),
            "number": rng.normal(size=rows).round(2),
            "count": pd.array(rng.integers(0, 9, rows), dtype="Int32"),
            "word": rng.choice(["a", "é", ""], rows),
            "level": pd.Categorical(rng.choice(["u", "v"], rows)),
            "flag": rng.random(rows) < 0.5,
            "when": pd.to_datetime(rng.integers(0, 10**12, rows), unit="ms"),
            "span": pd.to_timedelta(rng.integers(0, 10**9, rows), unit="ms"),
            "empty": np.full(rows, np.nan),
            "y": rng.normal(size=rows),
        }
    )
    return frame.mask(rng.random(frame.shape) < [0, 0.1, 0.1, 0.1, 0.1, 0, 0.1, 0.1, 0, 0])


SAME_ROWS = {
    "other order": lambda f: f.sample(frac=1, random_state=1),
    "polars": pl.from_pandas,
    "arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    "chunks": lambda f: pa.concat_tables(
        pa.Table.from_pandas(part, preserve_index=False) for part in (f[:11], f[11:])
    ),
    "other types": lambda f: f.astype({"level": object, "count": float, "when": "M8[us]"}),
    "negative zero": lambda f: f.assign(number=f.number.where(f.number != 0, -0.0)),
    "more rows without a target": lambda f: pd.concat([f, f.assign(y=np.nan)]),
}


@pytest.mark.parametrize("name", SAME_ROWS)
def test_the_same_rows_go_on_however_they_come(name, tmp_path, monkeypatch):
    frame = every_kind()
    frame.loc[5, "number"] = 0.0
    fit = {"by": "key", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    first = index_of(fit_many(frame[frame.key == 1], **fit))
    lines = index_of(fit_many(SAME_ROWS[name](frame), **fit))
    assert lines.digest.nunique() == 2
    assert lines.error.isna().all()
    pd.testing.assert_frame_equal(lines.loc[first.index], first)


def test_groups_that_were_fitted_to_the_same_rows_have_the_same_digest(tmp_path):
    frame = stores(groups=1)
    both = pd.concat([frame, frame.assign(store="copy")])
    fit = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    assert index_of(fit_many(both, **fit)).digest.nunique() == 1


def test_negative_zero_is_zero(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"key": np.resize([0.0, -0.0, 0.5], 90), "x": rng.normal(size=90)})
    fit = {"by": "key", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    index = index_of(fit_many(frame.assign(y=frame.x), **fit))
    assert index.index.tolist() == [0.0, 0.5]
    assert index.rows.tolist() == [60, 30]
    predicted = [
        predict_many(frame.assign(key=[zero] * 60 + [0.5] * 30), by="key", models=tmp_path)
        for zero in (0.0, -0.0)
    ]
    np.testing.assert_array_equal(*predicted)
    assert len(list(tmp_path.glob("models/**/*.psilon"))) == 2


def test_failures_are_named_and_stop_nobody(tmp_path):
    frame = stores(groups=6, rows=50)
    names = sorted(frame.store.unique())
    frame["label"] = np.where(frame.y > 0, "high", "low")
    frame.loc[frame.store == names[1], "label"] = "high"  # one class only
    frame.loc[frame.store == names[2], ["size", "town"]] = [1.0, "a"]  # constant columns
    frame.loc[frame.store == names[3], "size"] = np.inf
    frame.loc[frame.store == names[4], "label"] = None
    frame.loc[frame.index[frame.store == names[5]][:4], "label"] = None
    classifier = PSiLONClassifier(**QUICK, reg_strength=1e-3)
    table = frame.drop(columns="y")
    path = fit_many(
        table, by="store", target="label", estimator=classifier, out=tmp_path, progress=False
    )
    index = index_of(path).loc[names]
    for line, reason in zip(
        index.error, [None, "one class only", "constant or empty", "infinity", "0 sample", None],
        strict=True,
    ):  # fmt: skip
        assert pd.isna(line) if reason is None else reason in line
    assert index.rows.tolist() == [50, 50, 50, 50, 0, 46]
    assert index.score.notna().tolist() == [True, False, False, False, False, True]
    with pytest.warns(UserWarning, match=r"200 of 300 rows have no prediction"):
        predictions = predict_many(table.replace(np.inf, 0), by="store", models=tmp_path)
    fitted = table.store.isin([names[0], names[5]]).to_numpy()
    assert set(predictions[fitted]) == {"high", "low"}
    assert set(predictions[~fitted]) == {None}
    known = predict_many(table[fitted], by="store", models=tmp_path)
    assert known.dtype.kind == "U"


def test_rows_without_a_key_are_nobodys(tmp_path):
    frame = stores(groups=2)
    frame.loc[:4, "store"] = None
    fit = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    with pytest.warns(UserWarning, match="5 rows without a value in 'store' belong to no group"):
        index = index_of(fit_many(frame, **fit))
    assert index.rows.sum() == 55
    frame.loc[5, "store"] = "a new store"
    with pytest.warns(UserWarning, match="6 of 60 rows have no prediction"):
        predictions = predict_many(frame, by="store", models=tmp_path)
    assert np.isnan(predictions[:6]).all()
    assert np.isfinite(predictions[6:]).all()
    with pytest.raises(ValueError, match="At least one row must have a value in 'store'"):
        fit_many(frame.assign(store=None), **{**fit, "out": tmp_path / "none"})


KEYS = {
    "whole numbers": (pd.Series([3, 5, 3]), pd.Series([3.0, None, 5.0]), "int64"),
    "dates": (
        pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"])),
        pl.Series([datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)]),
        "date32[day]",
    ),
    "categories": (pd.Series(list("aba"), dtype="category"), pl.Series(["a", None, "b"]), "string"),
    "booleans": (pd.Series([True, False, True]), pl.Series([True, None, False]), "bool"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_equal_keys_have_one_name_whatever_the_table(name):
    first, second, kind = KEYS[name]
    arrays = [
        pa.array(s.to_list(), from_pandas=True) if isinstance(s, pl.Series)
        else pa.Array.from_pandas(s) for s in (first, second)
    ]  # fmt: skip
    a, b = (groups_of(key_column(pa.table({"k": array}), "k")) for array in arrays)
    assert str(a.keys.type) == kind
    assert set(a.names) == set(b.names)
    assert b.missing.tolist() == [1]
    assert a.rows(0).tolist() == [0, 2]


def test_other_keys():
    at = datetime.datetime(2024, 1, 1, 12, 30)
    times = groups_of(key_column(pa.table({"k": pa.array([at, None])}), "k"))
    assert times.names == [key_name(at)]
    half = groups_of(key_column(pa.table({"k": [0.5, float("nan")]}), "k"))
    assert half.names == [key_name(0.5)]
    huge = groups_of(key_column(pa.table({"k": [1e300, 2.0]}), "k"))
    assert huge.names == [key_name(1e300), key_name(2)]
    with pytest.raises(TypeError, match=r"holds list<.*> instead: turn it into words"):
        key_column(pa.table({"k": [[1], [2]]}), "k")
    with pytest.raises(ValueError, match=r"Column 'k' has others .* turn it into words"):
        key_column(pa.table({"k": pa.array([2**63], pa.uint64())}), "k")


@pytest.mark.parametrize(
    "keys",
    [
        [*(float(k) for k in range(40)), 0.5],
        [*(datetime.datetime(2024, 1, k) for k in range(1, 31)), datetime.datetime(2024, 2, 1, 12)],
    ],
)
def test_the_keys_of_all_tasks_have_one_type(keys, tmp_path, monkeypatch):
    monkeypatch.setattr("psilonnet.scale.many.GROUPS_PER_TASK", 16)
    rows = np.arange(8 * len(keys)) % len(keys)
    frame = pd.DataFrame({"key": np.array(keys)[rows], "x": 1.0 * np.arange(len(rows))})
    settings = {"by": "key", "target": "y", "estimator": FIXED, "progress": False}
    index = fit_many(frame.assign(y=frame.x), out=tmp_path / "m", **settings)
    assert sorted(pd.read_parquet(index).group) == sorted(keys)


def test_tasks_are_even_and_bounded():
    sizes = np.full(50, 100)
    planned = plan_tasks(sizes, [key_name(k) for k in range(50)])
    assert [len(task) for task in planned] == [25, 25]
    assert sorted(k for task in planned for k in task) == list(range(50))
    large = plan_tasks(np.full(50, 15_000), [key_name(k) for k in range(50)])
    assert [len(task) for task in large] == [1] * 50


def test_files_are_spread_and_safe(tmp_path):
    folder = ModelFolder(tmp_path)
    paths = [folder.model(key_name(f"../{k}")) for k in range(20_000)]
    counts = pd.Series([path.parent for path in paths]).value_counts()
    assert len(counts) > 4000
    assert counts.max() < 30
    assert all(path.is_relative_to(tmp_path.resolve()) for path in paths)


def test_index_has_each_group_once(tmp_path):
    folder = ModelFolder(tmp_path)
    line = pa.table({"group": ["a"], "rows": [3]})
    folder.write_table(folder.shard("aa"), line)
    folder.write_table(folder.shard("bb"), pa.table({"group": ["b", "a"], "rows": [4, 5]}))
    assert pq.read_table(folder.merge()).to_pylist() == [
        {"group": "a", "rows": 3}, {"group": "b", "rows": 4},
    ]  # fmt: skip
    assert not list(tmp_path.rglob(".*"))


def test_far_rows_are_counted_in_one_warning(tmp_path):
    frame = stores(groups=2)
    fit_many(frame, by="store", target="y", estimator=FIXED, out=tmp_path, progress=False)
    with pytest.warns(OutOfRangeWarning, match="In 2 groups"):
        predict_many(frame.assign(size=1e6), by="store", models=tmp_path)


MISTAKES = {
    "column": ({"by": "shop"}, ValueError, r"has no column 'shop'. It has \['store', 'size'"),
    "estimator": ({"estimator": LinearRegression()}, TypeError, "must be a PSiLONClassifier"),
    "parameter": ({"estimator": PSiLONRegressor(width=0)}, ValueError, "'width' .* Got 0 instead"),
    "table": ({"table": [[1, 2]]}, TypeError, "must be a pandas, polars or Arrow table"),
    "cells": (
        {"table": stores(2).assign(mixed=lambda f: [1, "a"] * (len(f) // 2))},
        ValueError, "Each column must hold one kind of cells .*mixed.*turn such a column",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_before_anything_is_fitted(name, tmp_path):
    wrong, error, said = MISTAKES[name]
    given = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, **wrong}
    with pytest.raises(error, match=said):
        fit_many(given.pop("table", stores(2)), **given)
    assert not list(tmp_path.rglob("*.psilon"))


def test_folder_without_models_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a folder of models"):
        predict_many(stores(2), by="store", models=tmp_path)


def test_without_pyarrow_the_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import polars as pl, psilonnet\n"
        "from psilonnet.scale import fit_many\n"
        "fit_many(pl.DataFrame({'g': [1], 'y': [1.0]}), by='g', target='y',"
        f" estimator=psilonnet.PSiLONRegressor(), out={str(tmp_path)!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'psilonnet[parquet]'" in done.stderr


def test_names_may_be_numbers_and_the_target_is_another_column(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.normal(size=60), 1: np.resize([1, 2], 60), 2: np.arange(60.0)})
    settings = {"estimator": FIXED, "progress": False}
    fit_many(frame, by=1, target=2, out=tmp_path / "m", **settings)
    assert np.isfinite(predict_many(frame, by=1, models=tmp_path / "m")).all()
    with pytest.raises(ValueError, match=r"must be different columns. Both are '1'"):
        fit_many(frame, by=1, target=1, out=tmp_path / "n", **settings)
