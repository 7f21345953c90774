import numpy as np
import pyarrow as pa

from psilonnet.scale.many.groups import groups_of
from psilonnet.scale.many.keys import key_name, key_numbers
from psilonnet.scale.many.shards import (
    SHARD_CELLS,
    _plan_tasks,
    read_part,
    read_tasks,
    shard_count,
    shard_numbers,
    write_shard,
)


def test_tasks_are_even_and_bounded():
    sizes = np.full(50, 100)
    planned = _plan_tasks(sizes, [key_name(k) for k in range(50)])
    assert [len(task) for task in planned] == [25, 25]
    assert sorted(k for task in planned for k in task) == list(range(50))
    large = _plan_tasks(np.full(50, 15_000), [key_name(k) for k in range(50)])
    assert [len(task) for task in large] == [1] * 50


def test_shards_have_so_many_cells_and_so_many_groups():
    for rows in (1, 10**5, 10**7, 3 * 10**8):
        cells = rows * 12 / shard_count(rows, 12)
        assert cells <= SHARD_CELLS
        assert shard_count(rows, 12) == 1 or cells > SHARD_CELLS / 2
    numbers = shard_numbers(key_numbers(pa.array(np.arange(64_000))), 64)
    assert np.abs(np.bincount(numbers, minlength=64) - 1000).max() < 5 * np.sqrt(1000)


def test_tasks_of_a_shard_are_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("psilonnet.scale.many.shards.GROUPS_PER_TASK", 2)
    rows = pa.table({"key": list("abcabcaab"), "x": np.arange(9.0)})
    groups = groups_of(rows.column("key").combine_chunks())
    large = {int(key_numbers(pa.array(["b"]))[0]): 1000}
    write_shard(tmp_path / "s" / "0.parquet", rows, groups, {key_name("c"): "digest"}, large)
    tasks = read_tasks(tmp_path / "s" / "0.parquet")
    assert [names for _, names in tasks] == [[key_name("a"), key_name("b")]]
    cell = tasks[0][0]
    assert cell.found == {key_name("b"): 1000}
    assert read_part(cell).to_pydict() == {
        "key": list("aaaabbb"), "x": [0.0, 3.0, 6.0, 7.0, 1.0, 4.0, 8.0],
    }  # fmt: skip
