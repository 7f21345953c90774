"""A folder of models goes on with the rows that it was fitted to, and with no others."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from made_tables import stores
from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, designs=[Design()], cv=2)


def index_of(path):
    return pd.read_parquet(path).set_index("group").sort_index()


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
