"""Files larger than memory: the same shards as of the same rows in memory, whatever happens."""

import datetime
import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open

from made_tables import stores
from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import fit_many, predict_many
from psilonnet.scale.many.file_rows import FileRows
from psilonnet.scale.many.folder import ModelFolder
from psilonnet.scale.many.keys import key_name
from psilonnet.scale.many.spill import Spill
from psilonnet.scale.many.table_rows import TableRows

FIXED = PSiLONRegressor(
    width=16,
    depth=1,
    max_steps=40,
    learning_rate=2e-2,
    random_state=0,
    reg_strength=1e-3,
    designs=[Design()],
    cv=2,
)


@pytest.fixture
def small_pieces(monkeypatch):
    """Let a table of some hundred rows have many shards, stretches and runs."""
    monkeypatch.setattr("psilonnet.scale.many.shards.SHARD_CELLS", 200)
    monkeypatch.setattr("psilonnet.scale.many.spill.SHARD_CELLS", 130)
    monkeypatch.setattr("psilonnet.scale.many.file_rows.BLOCK_ROWS", 30)
    monkeypatch.setattr("psilonnet.scale.many.file_rows.STRETCH_ROWS", 40)
    monkeypatch.setattr("psilonnet.scale.files.blocks.BATCH", 17)


def many_kinds(rows=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "key": pd.array(rng.integers(0, 30, rows), "Int64"),
            "number": rng.normal(size=rows),
            "count": rng.integers(0, 9, rows),
            "word": rng.choice(["a", "é", None], rows),
            "level": pd.Categorical(rng.choice(["u", "v"], rows)),
            "when": pd.to_datetime(rng.integers(0, 10**12, rows), unit="ms"),
            "y": rng.normal(size=rows),
        }
    )
    frame.loc[::50, "key"] = pd.NA
    frame.loc[:9, "key"] = 7
    return frame


def write_files(frame, folder, changes=({}, {}, {})):
    """Write parts of a frame to files, each with some of its columns cast."""
    folder.mkdir()
    bounds = np.linspace(0, len(frame), len(changes) + 1).astype(int)
    for k, (start, end) in enumerate(itertools.pairwise(bounds)):
        table = pa.Table.from_pandas(frame[start:end], preserve_index=False)
        for name, kind in changes[k].items():
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(name).cast(kind))
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=45)
    return folder


def shards(rows, folder):
    """Return all shards of some rows."""
    if isinstance(rows, FileRows):
        rows.survey(ModelFolder(folder), progress=False)
    rows.begin(ModelFolder(folder), progress=False)
    return [rows.shard(number) for number in range(rows.shards)]


OTHER_TYPES = (
    {"key": pa.int32(), "count": pa.int8()},
    {"key": pa.float64(), "number": pa.float64(), "level": pa.string()},
    {"key": pa.int64(), "count": pa.uint32(), "word": pa.large_string()},
)


@pytest.mark.parametrize("changes", [({}, {}, {}), ({},), OTHER_TYPES])
@pytest.mark.parametrize("most", [None, 12])
def test_shards_of_files_are_those_of_the_table(changes, most, tmp_path, small_pieces):
    frame = many_kinds()
    files = write_files(frame, tmp_path / "in", changes)
    asked = ("key", "y", most, 3)
    table, read = TableRows(frame, *asked), FileRows(files, *asked)
    expected, found = shards(table, tmp_path / "a"), shards(read, tmp_path / "b")
    assert len(found) == len(expected) > 8
    assert read.missing == table.missing == 7
    assert read.large == table.large
    assert bool(table.large) == (most is not None)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.column_names == theirs.column_names
        assert ours.to_pydict() == theirs.to_pydict()  # in the same order
        assert [f.type for f in ours.schema if "dictionary" in str(f.type)] == [
            pa.dictionary(pa.int32(), pa.string())
        ] * (changes != OTHER_TYPES)
    sizes = frame.key.value_counts()
    assert sum(map(len, found)) == sizes.clip(upper=most or 400).sum()


def test_times_that_nanoseconds_do_not_reach_are_kept_beside_them(tmp_path):
    moments = [datetime.datetime(2020, 1, 1), datetime.datetime(9999, 12, 31)]
    spans = [datetime.timedelta(days=3), datetime.timedelta(days=200_000)]
    for k, unit in enumerate(("ns", "s")):
        columns = {
            "when": pa.array(moments[k : k + 1], pa.timestamp(unit, "UTC")),
            "span": pa.array(spans[k : k + 1], pa.duration(unit)),
        }
        pq.write_table(pa.table({"key": [1], "y": [0.5], **columns}), tmp_path / f"{k}.parquet")
    rows = FileRows(tmp_path, "key", "y", None, 0)
    found = rows.head(["when", "span"], 2).to_pydict()
    assert [moment.replace(tzinfo=None) for moment in found["when"]] == moments
    assert found["span"] == spans


def test_keys_of_a_float_file_and_a_file_of_dates_fit_together(tmp_path, small_pieces):
    half = pd.DataFrame({"key": [0.5, 1.0, 2.0] * 20, "x": 1.0, "y": 2.0})
    whole = pd.DataFrame({"key": [1, 2, 3] * 20, "x": 1.0, "y": 2.0})
    day, noon = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
    for name, parts, kind, groups in (
        ("numbers", (whole, half), "double", 4),
        ("times", (whole.assign(key=day), half.assign(key=noon)), "timestamp[us]", 2),
    ):
        folder = tmp_path / name
        folder.mkdir()
        for k, part in enumerate(parts):
            part.to_parquet(folder / f"{k}.parquet")
        rows = FileRows(folder / "*.parquet", "key", "y", None, 0)
        found = shards(rows, tmp_path / f"{name}.out")
        assert str(rows.schema.field("key").type) == kind
        sets = [{key_name(k) for k in part.column("key").to_pylist()} for part in found]
        assert sum(map(len, sets)) == len(set.union(*sets)) == groups  # each key in one shard


MISTAKES = {
    "kinds of keys": ({"key": lambda f: f.key.astype(str)}, TypeError, "one kind in all files"),
    "kinds of cells": ({"x": lambda f: f.key.astype(str)}, ValueError, "what column 'x' holds"),
    "columns": ({"z": 1.0}, ValueError, r"same columns.*differ in \['z'\]"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_files_that_do_not_fit_together_are_refused(name, tmp_path):
    wrong, error, said = MISTAKES[name]
    frame = pd.DataFrame({"key": [1, 2] * 9, "x": 1.0, "y": 2.0})
    (tmp_path / "in").mkdir()
    frame.to_parquet(tmp_path / "in" / "0.parquet")
    frame.assign(**wrong).to_parquet(tmp_path / "in" / "1.parquet")
    with pytest.raises(error, match=said):
        shards(FileRows(tmp_path / "in", "key", "y", None, 0), tmp_path / "out")


def test_other_mistakes_are_refused(tmp_path):
    fit = {"by": "store", "target": "y", "estimator": FIXED, "progress": False}
    files = write_files(stores(2), tmp_path / "in")
    with pytest.raises(ValueError, match="must go to a folder without files to read"):
        fit_many(files, **fit, out=tmp_path)
    for out in ("models", "more"):
        with pytest.raises(ValueError, match="or a second run would read its own outputs"):
            fit_many([files, tmp_path / "**" / "*.parquet"], **fit, out=tmp_path / out)
    with pytest.raises(ValueError, match="has no column 'shop'"):
        fit_many(files, **{**fit, "by": "shop"}, out=tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="no Parquet file at"):
        fit_many(tmp_path / "*.csv", **fit, out=tmp_path / "out")
    for most in (0, 10.5, "all"):
        with pytest.raises(ValueError, match="None or a whole number of at least 1"):
            fit_many(files, **fit, out=tmp_path / "out", max_group_rows=most)
    (files / "1.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"1\.parquet' is not a readable Parquet file .*remove"):
        fit_many(files, **fit, out=tmp_path / "out")


def index_of(path):
    return pd.read_parquet(path).set_index("group").sort_index().drop(columns="seconds")


def models_of(folder):
    """Return what all files of models hold; the order of their headers is nobody's."""
    found = {}
    for path in folder.glob("models/**/*.psilon"):
        with safe_open(path, "numpy") as file:
            tensors = {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
            found[path.relative_to(folder)] = (file.metadata(), tensors)
    return found


def test_models_of_files_are_those_of_the_table_to_the_last_bit(tmp_path, small_pieces):
    frame = stores(groups=6)
    frame.loc[frame.store == "store 2/../é", "y"] = np.nan  # fails, with its reason
    extra = frame[frame.store == "store 0/../é"].assign(size=lambda f: f["size"] + 0.1)
    frame = pd.concat([frame, extra, extra], ignore_index=True)  # a group of 90 rows, cut to 40
    files = write_files(frame, tmp_path / "in", ({}, {"size": pa.float32()}, {}))
    frame["size"] = pq.read_table(files, columns=["size"]).column("size").to_numpy()
    fit = {"by": "store", "target": "y", "estimator": FIXED, "progress": False}
    found = []
    for name, table in (("memory", frame), ("files", str(files / "*.parquet"))):
        said = r"1 groups have more than 40 rows, up to 90.*raise 'max_group_rows'"
        failed = pytest.warns(
            UserWarning, match=r"without a model: 1 of 6[^\n]*\n.*store 2.*No row"
        )
        with failed, pytest.warns(UserWarning, match=said):
            found.append(fit_many(table, **fit, out=tmp_path / name, max_group_rows=40))
    first, second = (index_of(path) for path in found)
    pd.testing.assert_frame_equal(first, second)
    assert first.sampled_from.dropna().to_dict() == {"store 0/../é": 90}
    assert first.rows["store 0/../é"] == 40
    assert len(models_of(tmp_path / "files")) == 5
    assert models_of(tmp_path / "memory") == models_of(tmp_path / "files")
    assert not (tmp_path / "files" / "work").exists()
    predicted = [predict_many(frame.dropna(), by="store", models=path.parent) for path in found]
    np.testing.assert_array_equal(*predicted)


class StopError(Exception):
    pass


@pytest.mark.parametrize("after", [0, 2, 6])
def test_dealing_goes_on_where_it_was_stopped(after, tmp_path, small_pieces, monkeypatch):
    frame = many_kinds()
    files = write_files(frame, tmp_path / "in", ({},) * 8)
    asked = (files, "key", "y", 12, 3)
    expected = shards(FileRows(*asked), tmp_path / "calm")
    written, left = [], [after]

    def write(spill, stretch, batches, sample, real=Spill.write):
        def interrupted():
            for batch in batches:
                yield batch
                if not left[0]:
                    raise StopError  # in the middle of a stretch
            left[0] -= 1

        real(spill, stretch, interrupted(), sample)
        written.append(stretch)

    monkeypatch.setattr(Spill, "write", write)
    with pytest.raises(StopError):
        shards(FileRows(*asked), tmp_path / "out")
    left[0] = 100
    monkeypatch.setattr(FileRows, "_read_keys", None)  # nor are the keys read again
    found = shards(FileRows(*asked), tmp_path / "out")
    assert all(a.equals(b) for a, b in zip(found, expected, strict=True))
    assert written == list(range(len(written)))  # each stretch once
    assert len(written) > 6
    assert not list(tmp_path.rglob("*.part"))


def test_other_files_are_dealt_anew_and_finished_groups_keep_their_rows(tmp_path, small_pieces):
    frame = stores(groups=4)
    fit = {"by": "store", "target": "y", "estimator": FIXED, "progress": False}
    out = tmp_path / "out"
    files = write_files(frame[frame.store < "store 2"], tmp_path / "in")
    first = index_of(fit_many(files, **fit, out=out))
    models = models_of(out)
    frame[frame.store >= "store 2"].to_parquet(files / "more.parquet", index=False)
    both = index_of(fit_many(files, **fit, out=out))
    assert len(both) == 4
    pd.testing.assert_frame_equal(both.loc[first.index], first)
    assert {path: models_of(out)[path] for path in models} == models
    frame[:1].to_parquet(files / "more.parquet", index=False)
    with pytest.raises(ValueError, match=re.escape("rows that it was fitted to, in any order")):
        fit_many(files, **fit, out=out)


def test_file_that_changes_in_between_is_named(tmp_path, small_pieces):
    files = write_files(stores(2), tmp_path / "in")
    rows = FileRows(files, "store", "y", None, 0)
    rows.survey(ModelFolder(tmp_path / "out"), progress=False)
    stores(3).to_parquet(files / "1.parquet")
    with pytest.raises(ValueError, match="it has changed since the run began"):
        rows.begin(ModelFolder(tmp_path / "out"), progress=False)
