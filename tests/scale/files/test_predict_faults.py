"""Files on a real Ray cluster of two nodes that loses workers, a node, its driver and its disk.

The everyday run loses the driver and the disk alone, without a cluster; that cells survive the loss
of workers and nodes is tested in ``test_cells_faults.py``.
"""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from disturbance import KILLS, Disturbed, needs_proc, one_node, resize_disk, small_disk, two_nodes
from psilonnet import Design, PSiLONClassifier
from psilonnet.scale import FilesFailedError, predict_files
from sizes import size

DRIVER = Path(__file__).with_name("predict_driver.py")
BLOCK_ROWS, BLOCKS = 10_000, 3  # of the driver, and of each file
FILES = size(4, long=4 + KILLS)
COLUMNS = [f"x{k}" for k in range(6)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with an exported model that takes some tenths of a second per block."""
    x = np.random.default_rng(0).normal(size=(200, len(COLUMNS)))
    options = {
        "width": 128,
        "depth": 3,
        "max_steps": 10,
        "reg_strength": 1e-3,
        "designs": [Design()],
        "cv": 2,
    }
    folder = tmp_path_factory.mktemp("exported")
    PSiLONClassifier(**options).fit(x, x[:, 0] > 0).export_numpy(folder)
    return folder


def write_files(folder, count):
    folder.mkdir()
    rows = BLOCK_ROWS * BLOCKS
    for k in range(count):
        rng = np.random.default_rng(k)
        columns = {name: rng.normal(size=rows).astype(np.float32) for name in COLUMNS}
        table = pa.table({"id": np.arange(rows) + rows * k, **columns})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=BLOCK_ROWS)


def spoil(path):
    """Overwrite the pages of the second row group, and leave the footer."""
    start = pq.read_metadata(path).row_group(1).column(1).file_offset
    start = start or pq.read_metadata(path).row_group(1).column(1).data_page_offset
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(4000))


def outputs(folder):
    return sorted(path.name for path in folder.rglob("*.parquet") if path.name[0] != ".")


def check_same(disturbed, calm):
    assert outputs(disturbed) == outputs(calm)
    for name in outputs(calm):
        assert pq.read_table(disturbed / name).equals(pq.read_table(calm / name)), name
    ids = pq.read_table(disturbed)["id"].to_numpy()
    assert len(np.unique(ids)) == len(ids)


@pytest.fixture
def source(tmp_path):
    """A folder of files, one of them with a page that cannot be read, one without its end."""
    folder = tmp_path / "in"
    write_files(folder, FILES)
    spoil(folder / "1.parquet")
    (folder / "cut.parquet").write_bytes((folder / "0.parquet").read_bytes()[:10_000])
    return folder


def start(model, source, out, *cluster):
    log = out.with_name("driver.log")
    return Disturbed([DRIVER, model, source, out, *cluster], log, lambda: len(outputs(out)))


def times(folder):
    return {name: (folder / name).stat().st_mtime_ns for name in outputs(folder)}


def check_whole(run, model, source, out):
    """Every row is there once, as in an undisturbed run, and what could not be read is named."""
    calm = out.with_name("calm")
    with pytest.raises(FilesFailedError):
        predict_files(model, source, calm, keep=["id"], block_rows=BLOCK_ROWS, progress=False)
    check_same(out, calm)
    assert len(outputs(out)) == BLOCKS * FILES - 1
    for words in (
        "could not be predicted: 2",
        f"1.parquet', rows {BLOCK_ROWS} to {2 * BLOCK_ROWS - 1}: its rows cannot be read",
        "cut.parquet': not a readable Parquet file",
    ):
        assert words in run.said()


def test_run_that_is_killed_repeats_nothing_and_names_the_bad(model, source, tmp_path):
    out = tmp_path / "out"
    run = start(model, source, out)
    run.wait_for_results(1)
    run.restart_driver()
    written = times(out)
    assert run.process.wait(timeout=300) == 1, run.said()
    check_whole(run, model, source, out)
    assert {name: times(out)[name] for name in written} == written


@pytest.mark.long
@needs_proc
def test_faults_lose_nothing_repeat_nothing_and_name_the_bad(model, source, tmp_path):
    out = tmp_path / "out"
    with two_nodes() as (cluster, node):
        run = start(model, source, out, cluster.address)
        run.wait_for_results(1)
        run.kill_workers(KILLS // 2)
        written = times(out)
        run.restart_driver()
        run.wait_for_results(len(written) + 2)
        cluster.remove_node(node)
        run.kill_workers(KILLS - KILLS // 2)
        assert run.process.wait(timeout=300) == 1, run.said()
    assert run.killed == KILLS
    check_whole(run, model, source, out)
    # What was there before the driver was killed has not been written again.
    assert {name: times(out)[name] for name in written} == written


@needs_proc
@pytest.mark.parametrize("on_cluster", [False, pytest.param(True, marks=pytest.mark.long)])
def test_full_disk_ends_the_run_and_loses_nothing(model, tmp_path, on_cluster):
    source, disk, calm = (tmp_path / name for name in ("in", "disk", "calm"))
    out = disk / "out"
    write_files(source, 3)
    options = {"keep": ["id"], "block_rows": BLOCK_ROWS, "progress": False}
    predict_files(model, source, calm, **options)
    total = sum(path.stat().st_size for path in calm.iterdir())
    with small_disk(disk, total // 2), one_node() if on_cluster else nullcontext() as cluster:
        words = [DRIVER, model, source, out, *([cluster.address] if cluster else [])]
        run = Disturbed(words, tmp_path / "driver.log", lambda: len(outputs(out)))
        assert run.process.wait(timeout=120) == 1
        assert "No space left on device" in run.said()
        assert "make room on the disk and run the same again" in run.said()
        before = outputs(out)
        assert 0 < len(before) < 3 * BLOCKS
        for name in before:  # what is there is whole
            assert pq.read_table(out / name).equals(pq.read_table(calm / name))
        resize_disk(disk, total * 3)
        run.start()
        assert run.process.wait(timeout=120) == 0, run.said()
        check_same(out, calm)
        assert not list(out.glob(".*"))
