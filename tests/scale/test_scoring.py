import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet._files import written
from psilonnet.scale import ScoringFailedError, score
from psilonnet.scale import shipped as shipped_module
from psilonnet.scale.block_output import BlockScorer
from psilonnet.scale.blocks import Source, cut, find_files
from psilonnet.tables import OutOfRangeWarning

SMALL = {"width": 16, "max_steps": 40, "reg_strength": 1e-3, "knots": 0, "verbose": False}


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.normal(50, 15, rows),
            "city": rng.choice(["Rome", "Oslo", None], rows),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "member": rng.random(rows) > 0.5,
        }
    )
    table.loc[::9, "income"] = np.nan
    return table


@pytest.fixture(scope="module")
def model():
    table = make_table(300, 0)
    answer = np.where(table.income.fillna(50) + 10 * (table.city == "Oslo") > 52, "yes", "no")
    return PSiLONClassifier(random_state=0, **SMALL).fit(table, answer)


@pytest.fixture
def files(tmp_path):
    """Three files of 100 rows in row groups of 30, with an id and a column nobody asked for."""
    (tmp_path / "in").mkdir()
    for k in range(3):
        table = make_table(100, k + 1).assign(id=np.arange(100) + 100 * k, extra="?")
        pq.write_table(
            pa.Table.from_pandas(table[::-1], preserve_index=False),
            tmp_path / "in" / f"{k}.parquet",
            row_group_size=30,
        )
    return tmp_path / "in"


def quietly(*arguments, **options):
    return score(*arguments, progress=False, **options)


def expected(model, files):
    table = pd.concat([pd.read_parquet(f) for f in sorted(files.glob("*.parquet"))])
    x = table[list(model.encoder_.names)]
    return table.id.tolist(), model.predict(x), model.predict_proba(x)


@pytest.mark.parametrize("cluster", [None, "local"])
def test_every_row_is_scored_once_and_in_order(model, files, tmp_path, cluster):
    done = quietly(
        model, files / "*.parquet", tmp_path / "out", keep=["id"], block_rows=60, cluster=cluster
    )
    assert [p.name for p in done.paths[:3]] == [
        "0-00000.parquet",
        "0-00001.parquet",
        "1-00000.parquet",
    ]
    assert (done.rows, done.new_rows) == (300, 300)
    found = pq.read_table(tmp_path / "out").to_pandas()
    ids, labels, shares = expected(model, files)
    assert found.columns.tolist() == ["id", "prediction", "probability of no", "probability of yes"]
    assert found.id.tolist() == ids
    assert (found.prediction == labels).all()
    np.testing.assert_allclose(found.iloc[:, 2:], shares, rtol=1e-12)


def test_file_folder_and_estimator_score_the_same(model, files, tmp_path):
    model.save(tmp_path / "m.psilon")
    model.export_numpy(tmp_path / "exported")
    sources = [model, tmp_path / "m.psilon", str(tmp_path / "exported")]
    tables = []
    for k, source in enumerate(sources):
        quietly(source, files, tmp_path / str(k))
        tables.append(pq.read_table(tmp_path / str(k)))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    # And each may go on where another stopped, because it is the same model.
    assert quietly(sources[2], files, tmp_path / "0").new_rows == 0


def test_far_rows_are_counted_in_one_warning(model, files, tmp_path):
    for name in ("0", "2"):
        table = pd.read_parquet(files / f"{name}.parquet")
        table.assign(income=1e9).to_parquet(files / f"{name}.parquet")
    with pytest.warns(OutOfRangeWarning, match="In 2 blocks some rows lie farther") as said:
        quietly(model, files, tmp_path / "out")
    assert len(said) == 1


def test_onnx_agrees(model, files, tmp_path):
    pytest.importorskip("onnxruntime")
    quietly(model, files, tmp_path / "out", keep=["id"], runtime="onnx")
    found = pq.read_table(tmp_path / "out").to_pandas()
    ids, labels, shares = expected(model, files)
    assert found.id.tolist() == ids
    assert (found.prediction == labels).all()
    np.testing.assert_allclose(found.iloc[:, 2:], shares, rtol=1e-4)


@pytest.mark.parametrize("runtime", ["numpy", "onnx"])
@pytest.mark.parametrize("targets", [0, 2])
def test_regressors_write_numbers(tmp_path, runtime, targets):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    model = PSiLONRegressor(random_state=0, **SMALL).fit(x, x[:, :targets] if targets else x[:, 0])
    pq.write_table(pa.table({f"x{k}": x[:, k] for k in range(3)}), tmp_path / "a.parquet")
    done = quietly(model, tmp_path / "a.parquet", tmp_path / "out", runtime=runtime)
    table = pq.read_table(done.paths[0])
    assert table.column_names == (["prediction 0", "prediction 1"] if targets else ["prediction"])
    found = np.stack([c.to_numpy() for c in table.columns], axis=1)
    wanted = model.predict(x).reshape(200, -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_types_of_parquet_are_read_as_the_estimator_reads_them(tmp_path):
    frame = pa.table(
        {
            "money": pa.array([Decimal(k % 7) for k in range(60)], pa.decimal128(9, 2)),
            "count": pa.array([None if k % 5 == 0 else k for k in range(60)], pa.int32()),
            "wait": pa.array([k * 3600_000 for k in range(60)], pa.duration("ms")),
            "day": pa.array(list(range(60)), pa.date32()),
            "at": pa.array([k * 10**9 for k in range(60)], pa.timestamp("us", "Europe/Rome")),
            "word": pa.array(["a", "b", None] * 20).dictionary_encode(),
            "flag": pa.array([True, None, False] * 20),
        }
    )
    model = PSiLONRegressor(random_state=0, **SMALL).fit(frame, np.arange(60.0))
    pq.write_table(frame, tmp_path / "a.parquet")
    done = quietly(model, tmp_path / "a.parquet", tmp_path / "out")
    found = pq.read_table(done.paths[0])["prediction"].to_numpy()
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)


def test_stopped_run_goes_on_with_what_is_missing(model, files, tmp_path):
    whole = quietly(model, files, tmp_path / "whole", block_rows=30)
    done = quietly(model, files, tmp_path / "out", block_rows=30)
    before = {path: path.stat().st_mtime_ns for path in done.paths}
    done.paths[2].unlink()
    (tmp_path / "out" / ".0-00002.parquet.1234.part").write_bytes(b"half")
    again = quietly(model, files, tmp_path / "out", block_rows=30)
    assert (again.rows, again.new_rows) == (300, 30)
    assert [p for p in again.paths if p.stat().st_mtime_ns != before[p]] == [done.paths[2]]
    assert not list((tmp_path / "out").glob(".*"))
    for ours, theirs in zip(again.paths, whole.paths, strict=True):
        assert ours.read_bytes() == theirs.read_bytes()


def test_output_made_from_something_else_is_refused_with_the_remedy(model, files, tmp_path):
    quietly(model, files, tmp_path / "out", block_rows=60)
    with pytest.raises(ValueError, match=r"another number of rows per block\. Delete it and"):
        quietly(model, files, tmp_path / "out", block_rows=30)
    with pytest.raises(ValueError, match=r"made with other columns to keep\."):
        quietly(model, files, tmp_path / "out", block_rows=60, keep=["id"])
    table = make_table(100, 50)
    other = PSiLONClassifier(random_state=1, **SMALL).fit(table, table.member)
    with pytest.raises(ValueError, match="another model or runtime"):
        quietly(other, files, tmp_path / "out", block_rows=60)
    pq.write_table(pa.Table.from_pandas(table), files / "1.parquet", row_group_size=30)
    with pytest.raises(ValueError, match=r"1-00000.*made with another content of the file"):
        quietly(model, files, tmp_path / "out", block_rows=60)
    for path in (tmp_path / "out").glob("1-*"):
        path.unlink()
    assert quietly(model, files, tmp_path / "out", block_rows=60).new_rows == 100


def test_file_that_changes_while_it_is_scored_is_named(model, files, tmp_path, monkeypatch):
    calm = BlockScorer.__call__

    def disturbed(self, block):
        if block.source.name == "1" and block.number == 0:
            pq.write_table(pa.Table.from_pandas(make_table(100, 9)), block.source.path)
        return calm(self, block)

    monkeypatch.setattr(BlockScorer, "__call__", disturbed)
    with pytest.raises(ScoringFailedError, match=r"1\.parquet', rows 0 to 99: it has changed"):
        quietly(model, files, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "0-00000.parquet",
        "2-00000.parquet",
    ]


def test_schema_errors_are_found_before_the_first_row(model, files, tmp_path):
    table = pq.read_table(files / "1.parquet")
    pq.write_table(table.drop_columns(["city", "id"]), files / "1.parquet")
    words = table.set_column(0, "income", pa.array(["much"] * 100))
    pq.write_table(words, files / "2.parquet")
    with pytest.raises(ValueError, match="Nothing was scored") as caught:
        quietly(model, files, tmp_path / "out", keep=["id"])
    for part in (
        "1.parquet': column 'city' is missing",
        "1.parquet': column 'id' is missing",
        "2.parquet': column 'income' holds string, and the model takes kind 'number'",
    ):
        assert part in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_column_without_a_value_is_of_every_kind(model, files, tmp_path):
    table = pq.read_table(files / "1.parquet")
    for k, name in enumerate(["income", "city", "since"]):
        table = table.set_column(k, name, pa.nulls(100))
    pq.write_table(table, files / "1.parquet")
    assert quietly(model, files, tmp_path / "out").rows == 300


def test_bad_files_are_named_and_the_good_are_scored(model, files, tmp_path):
    (files / "no_footer.parquet").write_bytes(b"PAR1 and then nothing")
    bad = bytearray((files / "1.parquet").read_bytes())
    bad[4:400] = bytes(396)  # the first pages; the footer is whole
    (files / "1.parquet").write_bytes(bad)
    table = pq.read_table(files / "2.parquet").to_pandas()
    table.loc[99, "income"] = np.inf
    pq.write_table(pa.Table.from_pandas(table), files / "2.parquet", row_group_size=60)
    with pytest.raises(ScoringFailedError, match=r"could not be scored: 3\.") as caught:
        quietly(model, files, tmp_path / "out", block_rows=60)
    said = str(caught.value)
    assert "no_footer.parquet': not a readable Parquet file" in said
    assert "1.parquet', rows 0 to 59: its rows cannot be read" in said
    assert "2.parquet', rows 60 to 99: Numbers must be finite" in said
    written = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert written == [f"{name}.parquet" for name in ("0-00000", "0-00001", "1-00001", "2-00000")]


def test_disk_that_refuses_ends_the_run_with_the_remedy(model, files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").write_text("in the way of a folder")
    (files / "deep").mkdir()
    (files / "0.parquet").rename(files / "deep" / "0.parquet")
    with pytest.raises(OSError, match=r"deep/0-00000.parquet.*make room on the disk"):
        quietly(model, files / "deep" / ".." / "**/*.parquet", tmp_path / "out")


def test_files_are_found_and_named(tmp_path):
    for name in ("a.parquet", "b/a.parquet", "b/c.pq", ".hidden.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert list(find_files(tmp_path)) == ["a", "b/a"]
    assert list(find_files(str(tmp_path / "*" / "*"))) == ["b/a", "b/c"]
    assert list(find_files([tmp_path / "a.parquet", tmp_path / "b" / "c.pq"])) == ["a", "c"]
    with pytest.raises(ValueError, match="their names must differ"):
        find_files([tmp_path / "a.parquet", tmp_path / "b" / "a.parquet"])
    for nothing in (tmp_path / "none.parquet", tmp_path / "none" / "*.parquet"):
        with pytest.raises(FileNotFoundError, match="There is no Parquet file at"):
            find_files(nothing)


def test_blocks_cover_every_row_once():
    rng = np.random.default_rng(0)
    source = Source("a", "a", 1, "")
    for _ in range(200):
        groups = rng.integers(0, 50, size=rng.integers(0, 12)).tolist()
        most = int(rng.integers(1, 120))
        blocks = list(cut(source, groups, most))
        assert sum(block.rows for block in blocks) == sum(groups)
        assert [b.number for b in blocks] == list(range(len(blocks)))
        for block in blocks:
            own = groups[slice(*block.groups)]
            assert sum(own) == block.rows > 0
            assert block.first_row == sum(groups[: block.groups[0]])
            assert block.rows <= most or sum(size > 0 for size in own) == 1


def test_arguments_are_checked(model, files, tmp_path):
    with pytest.raises(ValueError, match="'runtime' must be 'numpy' or 'onnx'"):
        quietly(model, files, tmp_path / "out", runtime="torch")
    with pytest.raises(ValueError, match="'keep' must be a list of names"):
        quietly(model, files, tmp_path / "out", keep="id")
    with pytest.raises(ValueError, match=r"different names.*\['id'\]"):
        quietly(model, files, tmp_path / "out", keep=["id", "id"])
    with pytest.raises(ValueError, match="choose another 'out'"):
        quietly(model, files, files)
    with pytest.raises(TypeError, match="must be a fitted psilonnet estimator"):
        quietly(42, files, tmp_path / "out")
    model.export_numpy(tmp_path / "exported")
    with pytest.raises(ValueError, match="runs with runtime='numpy' only"):
        quietly(tmp_path / "exported", files, tmp_path / "out", runtime="onnx")


def test_digest_sees_the_content_alone(model, tmp_path, monkeypatch):
    first = shipped_module.ship_model(model, "numpy")
    manifest = json.loads(first.manifest)
    model.export_numpy(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "psilonnet": "9.9"}))
    assert shipped_module.ship_model(tmp_path, "numpy").digest == first.digest
    manifest["target"]["temperature"] *= 2
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert shipped_module.ship_model(tmp_path, "numpy").digest != first.digest


def test_exported_folder_is_scored_without_torch_or_ray(model, files, tmp_path):
    model.export_numpy(tmp_path / "exported")
    code = (
        "import sys; sys.modules['ray'] = sys.modules['torch'] = sys.modules['sklearn'] = None\n"
        "from psilonnet.scale import score\n"
        f"done = score({str(tmp_path / 'exported')!r}, {str(files)!r}, {str(tmp_path / 'out')!r})\n"
        "print(done.rows)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "300"
    assert "row/s" in done.stderr


def test_file_that_another_run_is_writing_is_left_alone(model, files, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    own, other = out / ".0-00000.parquet.abc.part", out / ".x-00000.parquet.abc.part"
    for left in (own, other):
        left.write_text("half")
    quietly(model, files, out)
    assert not own.exists()
    assert other.exists()


def test_file_that_vanishes_while_it_is_written_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), written(tmp_path / "a"):
        pass


def test_folder_may_have_brackets_in_its_name(model, files, tmp_path):
    files.rename(tmp_path / "in[1]")
    for asked in (tmp_path / "in[1]", tmp_path / "in[1]" / "*.parquet"):
        assert sorted(find_files(asked)) == ["0", "1", "2"]


def test_outputs_beside_inputs_are_refused_however_the_folder_is_named(model, files, tmp_path):
    (tmp_path / "link").symlink_to(files)
    for out in (tmp_path / "x" / ".." / "in", tmp_path / "link"):
        with pytest.raises(ValueError, match="must go to a folder without files to score"):
            quietly(model, files, out)
