"""One model per group: files, index, resumption, failures."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

import psilonnet
from made_tables import stores
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import fit_together
from psilonnet.scale import fit_many, predict_many
from psilonnet.scale.many import shards
from psilonnet.scale.many.task import GroupTask

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, designs=[Design()], cv=2)


def index_of(path):
    return pd.read_parquet(path).set_index("group").sort_index()


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_each_group_has_its_model_and_its_line(convert, tmp_path):
    frame = stores()
    table = convert(frame)
    path = fit_many(
        table, by="store", target="y", estimator=FIXED, out=tmp_path / "m", progress=False
    )
    index = index_of(path)
    assert list(index.columns) == [
        "rows", "score", "bound", "sparsity", "path", "seconds", "error", "digest", "sampled_from",
    ]  # fmt: skip
    assert index.index.tolist() == sorted(frame.store.unique())
    assert (index.rows == 30).all()
    assert index.error.isna().all()
    predictions = predict_many(table, by="store", models=tmp_path / "m")
    for store, line in index.iterrows():
        own = (frame.store == store).to_numpy()
        model = psilonnet.load(tmp_path / "m" / line.path)
        assert model.lipschitz_bound_ == line.bound
        assert model.held_out_score_ == line.score
        np.testing.assert_array_equal(
            model.predict(frame.loc[own, ["size", "town"]]), predictions[own]
        )
    assert not (tmp_path / "m" / "work").exists()


def test_groups_too_small_to_hold_rows_out_have_no_score(tmp_path):
    small = clone(FIXED).set_params(cv=None)
    fit = {"by": "store", "target": "y", "estimator": small, "progress": False}
    index = index_of(fit_many(stores(groups=2), out=tmp_path, **fit))
    assert (index.rows == 30).all()
    assert index.score.isna().all()


def test_models_side_by_side_keep_no_candidates():
    x = np.random.default_rng(0).normal(size=(60, 2))
    models = [clone(FIXED), clone(FIXED)]
    assert fit_together(models, [(x, x[:, 0]), (x, x[:, 1])]) == [None, None]
    for model in models:
        with pytest.raises(ValueError, match="They are gone"):
            model.with_selection("provable")


def test_second_call_fits_only_what_is_missing(tmp_path, monkeypatch):
    frame = stores(groups=6)
    fit = {"by": "store", "target": "y", "estimator": FIXED, "out": tmp_path, "progress": False}
    first = index_of(fit_many(frame[frame.store < "store 3"], **fit))
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("models/**/*.psilon")}
    monkeypatch.setattr(shards, "GROUPS_PER_TASK", 2)  # another plan changes nothing
    both = index_of(fit_many(frame, **fit))
    assert len(both) == 6
    pd.testing.assert_frame_equal(both.loc[first.index], first)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    calls = []
    monkeypatch.setattr(GroupTask, "__call__", lambda _, cell: calls.append(cell))
    pd.testing.assert_frame_equal(index_of(fit_many(frame, **fit)), both)
    assert calls == []
    with pytest.raises(ValueError, match=r"with other parameters \(.*\): use another folder"):
        fit_many(frame, **{**fit, "estimator": clone(FIXED).set_params(width=8)})


def test_runs_with_other_designs_or_folds_are_refused(tmp_path):
    frame = stores()
    fit = {"by": "store", "target": "y", "out": tmp_path, "progress": False}
    begun = frame[frame.store == frame.store.iloc[0]]
    fit_many(begun, estimator=clone(FIXED).set_params(cv=KFold(2)), **fit)
    others = {"designs": [Design(pieces=3)], "cv": KFold(3)}
    for name, value in others.items():
        other = clone(FIXED).set_params(**{"cv": KFold(2), name: value})
        with pytest.raises(ValueError, match=rf"with other parameters \({name}\): use another"):
            fit_many(frame, estimator=other, **fit)
    same = clone(FIXED).set_params(cv=KFold(2), designs=[{"pieces": 1}])
    assert len(index_of(fit_many(begun, estimator=same, **fit))) == 1


class Halves:
    """A splitter of one's own, which does not tell its settings."""

    def split(self, x, y=None, groups=None):
        rows = np.arange(len(x))
        yield from ((rows[k::2], rows[1 - k :: 2]) for k in (0, 1))


def test_run_with_a_splitter_of_ones_own_goes_on(tmp_path):
    frame = stores()
    frame = frame[frame.store == frame.store.iloc[0]]
    for _ in range(2):  # the second time with another object, as another process has it
        estimator = clone(FIXED).set_params(cv=Halves())
        fit = {"by": "store", "target": "y", "out": tmp_path, "progress": False}
        assert len(index_of(fit_many(frame, estimator=estimator, **fit))) == 1


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file' is a file: name a folder to write to"):
        fit_many(stores(), by="store", target="y", out=tmp_path / "file", estimator=FIXED)


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
    fit = {"by": "store", "target": "label", "estimator": classifier, "progress": False}
    for _ in range(2):  # the second time nothing is left to fit
        with pytest.warns(UserWarning, match="Groups without a model: 4 of 6") as said:
            path = fit_many(table, **fit, out=tmp_path)
        assert len(said) == 1
        assert f"\n  {names[1]!r}: ValueError: " in str(said[0].message)
    index = index_of(path).loc[names]
    for line, reason in zip(
        index.error, [None, "one class only", "constant or empty", "infinity", "No row", None],
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


@pytest.mark.parametrize(
    "keys",
    [
        [*(float(k) for k in range(40)), 0.5],
        [*(datetime.datetime(2024, 1, k) for k in range(1, 31)), datetime.datetime(2024, 2, 1, 12)],
    ],
)
def test_the_keys_of_all_tasks_have_one_type(keys, tmp_path, monkeypatch):
    monkeypatch.setattr("psilonnet.scale.many.shards.GROUPS_PER_TASK", 16)
    rows = np.arange(8 * len(keys)) % len(keys)
    frame = pd.DataFrame({"key": np.array(keys)[rows], "x": 1.0 * np.arange(len(rows))})
    settings = {"by": "key", "target": "y", "estimator": FIXED, "progress": False}
    index = fit_many(frame.assign(y=frame.x), out=tmp_path / "m", **settings)
    assert sorted(pd.read_parquet(index).group) == sorted(keys)


MISTAKES = {
    "column": ({"by": "shop"}, ValueError, r"has no column 'shop'. It has \['store', 'size'"),
    "estimator": ({"estimator": LinearRegression()}, TypeError, "must be a PSiLONClassifier"),
    "parameter": ({"estimator": PSiLONRegressor(width=0)}, ValueError, "'width' .* Got 0 instead"),
    "table": ({"table": [[1, 2]]}, TypeError, "must be a pandas, polars or Arrow table"),
    "names": (
        {"table": stores(2).rename(columns={"town": "size"})},
        ValueError, r"must be unique. These occur more than once: \['size'\]",
    ),
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
