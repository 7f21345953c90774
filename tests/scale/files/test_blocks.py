import numpy as np
import pytest

from psilonnet.scale.files.blocks import Source, _cut, find_files


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


def test_folder_may_have_brackets_in_its_name(model, files, tmp_path):
    files.rename(tmp_path / "in[1]")
    for asked in (tmp_path / "in[1]", tmp_path / "in[1]" / "*.parquet"):
        assert sorted(find_files(asked)) == ["0", "1", "2"]


def test_blocks_cover_every_row_once():
    rng = np.random.default_rng(0)
    source = Source("a", "a", 1, "")
    for _ in range(200):
        groups = rng.integers(0, 50, size=rng.integers(0, 12)).tolist()
        most = int(rng.integers(1, 120))
        blocks = list(_cut(source, groups, most))
        assert sum(block.rows for block in blocks) == sum(groups)
        assert [b.number for b in blocks] == list(range(len(blocks)))
        for block in blocks:
            own = groups[slice(*block.groups)]
            assert sum(own) == block.rows > 0
            assert block.first_row == sum(groups[: block.groups[0]])
            assert block.rows <= most or sum(size > 0 for size in own) == 1
