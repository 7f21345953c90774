import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_tables import members
from psilonnet import PSiLONClassifier
from psilonnet.scale import FilesFailedError, predict_files
from psilonnet.tables import LossWarning, OutOfRangeWarning, TextStyle

quietly = partial(predict_files, progress=False)


def expected(model, files):
    table = pd.concat([pd.read_parquet(f) for f in sorted(files.glob("*.parquet"))])
    x = table[list(model.encoder_.names)]
    return table.id.tolist(), model.predict(x), model.predict_proba(x)


@pytest.mark.parametrize("cluster", [None, "local"])
def test_every_row_is_predicted_once_and_in_order(model, files, tmp_path, cluster):
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


def test_file_folder_and_estimator_predict_the_same(model, files, tmp_path):
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


def test_unknown_levels_are_said_once_with_the_number_of_blocks(model, files, tmp_path):
    for name in ("0", "2"):
        table = pd.read_parquet(files / f"{name}.parquet")
        table.assign(city="rome").to_parquet(files / f"{name}.parquet")
    with pytest.warns(LossWarning, match=r"'city' \(such as 'rome'\).* in 2 blocks") as said:
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


def test_schema_errors_are_found_before_the_first_row(model, files, tmp_path):
    table = pq.read_table(files / "1.parquet")
    pq.write_table(table.drop_columns(["city", "id"]), files / "1.parquet")
    words = table.set_column(0, "income", pa.array(["much"] * 100))
    pq.write_table(words, files / "2.parquet")
    with pytest.raises(ValueError, match="Nothing was predicted") as caught:
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


def test_a_column_that_was_empty_in_fit_may_hold_anything(files, tmp_path):
    table = members(300, 0).assign(extra=np.nan)
    model = PSiLONClassifier(width=4, max_steps=2, cv=2, reg_strength=1e-3, verbose=False)
    with pytest.warns(LossWarning, match="no value in any row is left out: 'extra'"):
        model.fit(table, table.city == "Oslo")
    assert quietly(model, files, tmp_path / "out", text=TextStyle()).rows == 300


def test_bad_files_are_named_and_the_good_are_predicted(model, files, tmp_path):
    (files / "no_footer.parquet").write_bytes(b"PAR1 and then nothing")
    bad = bytearray((files / "1.parquet").read_bytes())
    bad[4:400] = bytes(396)  # the first pages; the footer is whole
    (files / "1.parquet").write_bytes(bad)
    table = pq.read_table(files / "2.parquet").to_pandas()
    table.loc[99, "income"] = np.inf
    pq.write_table(pa.Table.from_pandas(table), files / "2.parquet", row_group_size=60)
    with pytest.raises(FilesFailedError, match=r"could not be predicted: 3\.") as caught:
        quietly(model, files, tmp_path / "out", block_rows=60)
    said = str(caught.value)
    assert "no_footer.parquet': not a readable Parquet file" in said
    assert "1.parquet', rows 0 to 59: its rows cannot be read" in said
    assert "2.parquet', rows 60 to 99: Numbers must be finite" in said
    written = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert written == [f"{name}.parquet" for name in ("0-00000", "0-00001", "1-00001", "2-00000")]


def test_arguments_are_checked(model, files, tmp_path):
    with pytest.raises(ValueError, match="'runtime' must be 'numpy' or 'onnx'"):
        quietly(model, files, tmp_path / "out", runtime="torch")
    with pytest.raises(ValueError, match="'keep' must be a list of names"):
        quietly(model, files, tmp_path / "out", keep="id")
    with pytest.raises(ValueError, match=r"different names.*\['id'\]"):
        quietly(model, files, tmp_path / "out", keep=["id", "id"])
    for rows in (0, 2.5, "many", True):
        with pytest.raises(ValueError, match=f"'block_rows' must be a whole .* Got {rows!r}"):
            quietly(model, files, tmp_path / "out", block_rows=rows)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file' is a file: name a folder to write to"):
        quietly(model, files, tmp_path / "file")
    with pytest.raises(ValueError, match="choose another 'out'"):
        quietly(model, files, files)
    with pytest.raises(TypeError, match="must be a fitted psilonnet estimator"):
        quietly(42, files, tmp_path / "out")
    model.export_numpy(tmp_path / "exported")
    with pytest.raises(ValueError, match="runs with runtime='numpy' only"):
        quietly(tmp_path / "exported", files, tmp_path / "out", runtime="onnx")


def test_exported_folder_is_predicted_without_torch_or_ray(model, files, tmp_path):
    model.export_numpy(tmp_path / "exported")
    code = (
        "import sys; sys.modules['ray'] = sys.modules['torch'] = sys.modules['sklearn'] = None\n"
        "from psilonnet.scale import predict_files\n"
        f"places = {[str(p) for p in (tmp_path / 'exported', files, tmp_path / 'out')]}\n"
        "done = predict_files(*places)\n"
        "print(done.rows)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "300"
    assert "row/s" in done.stderr


def test_outputs_beside_inputs_are_refused_however_the_folder_is_named(model, files, tmp_path):
    (tmp_path / "link").symlink_to(files)
    for out in (tmp_path / "x" / ".." / "in", tmp_path / "link"):
        with pytest.raises(ValueError, match="must go to a folder without files to read"):
            quietly(model, files, out)
    (files / "a").mkdir()
    (files / "0.parquet").rename(files / "a" / "0.parquet")
    for asked in (
        files,
        files / "**" / "*.parquet",
        iter([files / "1.parquet", files / "?" / "*"]),
    ):
        with pytest.raises(ValueError, match="or a second run would read its own outputs"):
            quietly(model, asked, tmp_path / "link" / "b")
    assert quietly(model, files / "*.parquet", files / "b").rows == 200


def test_no_file_at_all_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="There must be at least one file to read"):
        quietly(model, [], tmp_path / "out")


def test_outputs_of_files_that_are_gone_are_named(model, files, tmp_path):
    quietly(model, files, tmp_path / "out")
    (tmp_path / "out" / "notes.parquet").write_bytes(b"of the user")
    (files / "1.parquet").unlink()
    with pytest.warns(UserWarning, match=r"1 outputs .* among them '1-00000\.parquet', .* Delete"):
        quietly(model, files, tmp_path / "out")
    (tmp_path / "out" / "1-00000.parquet").unlink()
    quietly(model, files, tmp_path / "out")
