"""Many models on a real Ray cluster of two nodes that loses workers, a node, its driver, its disk.

One group kills every worker that touches it; in the everyday run, on one node, nothing else does
but the kill of the driver.
"""

import pandas as pd
import pytest

from disturbance import KILLS, Disturbed, needs_proc, one_node, resize_disk, small_disk, two_nodes
from psilonnet.deploy.model_file import read_model_file
from psilonnet.scale.many.folder import ModelFolder
from scale.many import fit_driver as driver

# A good group is given up after RETRIES + 1 deaths of its task and as many of its own: together
# more than it can meet by chance. The poison needs them all, and each is a worker to start.
RETRIES = 4


def start(folder, n, cluster, log, *, retries):
    return Disturbed(
        [driver.__file__, folder, n, cluster.address, retries],
        log,
        lambda: len(ModelFolder(folder).shards()),
    )


def kill_workers(run, count):
    """Kill at random moments, but let one task end between two kills."""
    for _ in range(count):
        run.wait_for_results(run.count() + 1)
        run.kill_workers(1)


def check_whole(folder, calm, poison):
    """Every group is in the index once, equal to an undisturbed run's; the bad ones are named."""
    index = pd.read_parquet(folder / "index.parquet").set_index("group")
    undisturbed = pd.read_parquet(calm).set_index("group")
    assert sorted(index.index) == sorted([*undisturbed.index, poison])  # each once
    assert sorted(index.index[index.error.notna()]) == ["g1", poison]
    assert "constant or empty" in index.error["g1"]
    assert "worker" in index.error[poison].lower()
    good = undisturbed.index[undisturbed.error.isna()]
    assert (index.path[good] == undisturbed.path[good]).all()
    assert index.bound[good].to_numpy() == pytest.approx(undisturbed.bound[good], rel=1e-3)
    for path in index.path[good]:
        read_model_file(folder / path)  # with its checksum
    assert len(list(folder.glob("models/**/*.psilon"))) == len(good)


def undisturbed(tmp_path, n):
    with pytest.warns(UserWarning, match=rf"Groups without a model: 1 of {n}"):
        return driver.fit(tmp_path / "calm", n, poisoned=False)


@needs_proc
def test_group_that_kills_its_worker_is_named_and_a_killed_run_goes_on(tmp_path):
    folder = tmp_path / "models"
    with one_node() as cluster:
        # Nobody but the poison takes a worker with it: no group needs a second attempt.
        run = start(folder, 8, cluster, tmp_path / "driver.log", retries=0)
        run.wait_for_results(1)
        run.restart_driver()
        assert run.process.wait(timeout=300) == 0, run.said()
    check_whole(folder, undisturbed(tmp_path, 8), driver.POISON)


@pytest.mark.long
@needs_proc
def test_faults_lose_no_model_and_name_the_bad_groups(tmp_path):
    n = 4 * (8 + 2 * KILLS)
    folder = tmp_path / "models"
    with two_nodes() as (cluster, node):
        run = start(folder, n, cluster, tmp_path / "driver.log", retries=RETRIES)
        try:
            kill_workers(run, KILLS // 2)
            run.wait_for_results(run.count() + 1)
            run.restart_driver()
            run.wait_for_results(run.count() + 1)
            cluster.remove_node(node)
            kill_workers(run, KILLS - KILLS // 2)
            assert run.process.wait(timeout=600) == 0, run.said()
        finally:
            run.process.kill()
    assert run.killed == KILLS
    check_whole(folder, undisturbed(tmp_path, n), driver.POISON)


@pytest.mark.long
@needs_proc
def test_full_disk_ends_the_run_and_loses_no_model(tmp_path):
    n = 40
    calm = undisturbed(tmp_path, n)
    pages = sum(-(-path.stat().st_size // 4096) for path in calm.parent.rglob("*.*"))
    disk = tmp_path / "disk"
    with small_disk(disk, 4096 * pages // 2), two_nodes() as (cluster, _):
        run = start(disk / "models", n, cluster, tmp_path / "driver.log", retries=0)
        assert run.process.wait(timeout=240) == 1
        assert "No space left on device" in run.said()
        done = ModelFolder(disk / "models").finished()
        assert 0 < len(done) < n
        resize_disk(disk, 4096 * pages * 3)
        run.start()
        assert run.process.wait(timeout=240) == 0, run.said()
        check_whole(disk / "models", calm, driver.POISON)
        assert not list(disk.rglob(".*"))  # nothing half written
