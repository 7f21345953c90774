import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from psilonnet.scale.many.folder import ModelFolder
from psilonnet.scale.many.keys import key_name


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
