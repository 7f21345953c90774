from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_tables import members
from psilonnet import Design, PSiLONClassifier
from psilonnet.scale import FilesFailedError, predict_files
from psilonnet.scale.files.writer import BlockWriter

SMALL = {
    "width": 16,
    "max_steps": 40,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
    "verbose": False,
}
quietly = partial(predict_files, progress=False)


def test_output_made_from_something_else_is_refused_with_the_remedy(model, files, tmp_path):
    quietly(model, files, tmp_path / "out", block_rows=60)
    with pytest.raises(ValueError, match=r"another number of rows per block\. Delete it and"):
        quietly(model, files, tmp_path / "out", block_rows=30)
    with pytest.raises(ValueError, match=r"made with other columns to keep\."):
        quietly(model, files, tmp_path / "out", block_rows=60, keep=["id"])
    table = members(100, 50)
    other = PSiLONClassifier(random_state=1, **SMALL).fit(table, table.member)
    with pytest.raises(ValueError, match="another model or runtime"):
        quietly(other, files, tmp_path / "out", block_rows=60)
    pq.write_table(pa.Table.from_pandas(table), files / "1.parquet", row_group_size=30)
    with pytest.raises(ValueError, match=r"1-00000.*made with another content of the file"):
        quietly(model, files, tmp_path / "out", block_rows=60)
    for path in (tmp_path / "out").glob("1-*"):
        path.unlink()
    assert quietly(model, files, tmp_path / "out", block_rows=60).new_rows == 100


def test_damaged_output_is_called_so(model, files, tmp_path):
    quietly(model, files, tmp_path / "out")
    (tmp_path / "out" / "1-00000.parquet").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"1-00000\.parquet' is damaged, or another's: delete it"):
        quietly(model, files, tmp_path / "out")


def test_file_that_changes_while_it_is_predicted_is_named(model, files, tmp_path, monkeypatch):
    calm = BlockWriter.__call__

    def disturbed(self, block):
        if block.source.name == "1" and block.number == 0:
            pq.write_table(pa.Table.from_pandas(members(100, 9)), block.source.path)
        return calm(self, block)

    monkeypatch.setattr(BlockWriter, "__call__", disturbed)
    with pytest.raises(FilesFailedError, match=r"1\.parquet', rows 0 to 99: it has changed"):
        quietly(model, files, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "0-00000.parquet",
        "2-00000.parquet",
    ]


def test_disk_that_refuses_ends_the_run_with_the_remedy(model, files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").write_text("in the way of a folder")
    (files / "deep").mkdir()
    (files / "0.parquet").rename(files / "deep" / "0.parquet")
    with pytest.raises(OSError, match=r"deep/0-00000.parquet.*make room on the disk"):
        quietly(model, files / "deep" / ".." / "**/*.parquet", tmp_path / "out")


def test_file_that_another_run_is_writing_is_left_alone(model, files, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    own, other = out / ".0-00000.parquet.abc.part", out / ".x-00000.parquet.abc.part"
    for left in (own, other):
        left.write_text("half")
    quietly(model, files, out)
    assert not own.exists()
    assert other.exists()
