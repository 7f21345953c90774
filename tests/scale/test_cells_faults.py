"""A real Ray cluster of two nodes that loses workers, a node, its driver and, once, its disk.

One worker is killed in the everyday run, twenty in the long one.
"""

from disturbance import KILLS, Disturbed, needs_proc, two_nodes
from psilonnet.scale import Results, run_cells
from scale import cells_driver as driver


@needs_proc
def test_faults_lose_nothing_and_repeat_nothing(tmp_path):
    n = max(20, 12 + 2 * KILLS)
    folder = tmp_path / "results"
    with two_nodes() as (cluster, node):
        run = Disturbed(
            [driver.__file__, folder, n, cluster.address],
            tmp_path / "driver.log",
            lambda: len(Results(folder)),
        )
        run.wait_for_results(1)
        run.kill_workers(KILLS // 2)
        run.refuse_writes(folder)
        run.restart_driver()
        run.wait_for_results(len(Results(folder)) + 1)
        cluster.remove_node(node)
        run.kill_workers(KILLS - KILLS // 2)
        assert run.process.wait(timeout=300) == 0, run.said()
    undisturbed = run_cells(
        driver.work, driver.make_cells(n, 0.0), tmp_path / "calm", progress=False
    )
    disturbed = Results(folder)
    assert run.killed == KILLS
    assert len(disturbed) == n
    assert sorted(cell["seed"] for cell in disturbed) == list(range(n))
    for cell in disturbed:
        assert disturbed[cell] == undisturbed[{**cell, "seconds": 0.0}]
    assert not list(folder.glob(".*"))
