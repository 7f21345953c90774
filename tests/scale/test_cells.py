import errno
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from psilonnet.scale import CellsFailedError, Results, cell_key, run_cells
from psilonnet.scale import cells as cells_module
from psilonnet.scale import results as results_module

CELLS = [{"n": n} for n in range(6)]


def square(cell):
    return {"square": cell["n"] ** 2}


@pytest.mark.parametrize("cluster", [None, "local"])
def test_cells_are_computed_once_and_failures_do_not_stop_the_rest(tmp_path, cluster):
    calls = tmp_path / "calls"

    def counted(cell):
        with calls.open("a") as file:
            file.write(f"{cell['n']}\n")
        if cell["n"] == 4:
            raise ValueError("four is refused")
        return {"square": cell["n"] ** 2}

    for _ in range(2):
        with pytest.raises(CellsFailedError, match=r"failed: 1[^$]*four is refused") as caught:
            run_cells(counted, [*CELLS, CELLS[0]], tmp_path, cluster=cluster, progress=False)
        assert [cell for cell, _ in caught.value.failures] == [{"n": 4}]
        assert isinstance(caught.value.failures[0][1], ValueError)
    # What has a result is not computed again; what failed is.
    assert sorted(calls.read_text().split()) == ["0", "1", "2", "3", "4", "4", "5"]
    results = Results(tmp_path)
    assert len(results) == 5
    assert results[{"n": 3}] == {"square": 9}
    assert {"n": 4} not in results


def test_key_is_made_of_the_content_alone():
    key = cell_key({"dataset": "higgs", "model": "P-Net", "seed": 0})
    assert key == cell_key({"seed": 0, "model": "P-Net", "dataset": "higgs"})
    assert key != cell_key({"dataset": "higgs", "model": "P-Net", "seed": 1})
    assert key.startswith("higgs-P_Net-0-")
    long = cell_key({"path": "../../etc/passwd " + "x" * 500})
    assert "/" not in long
    assert len(long) < 100


@pytest.mark.parametrize("cell", [{"f": square}, {"x": float("nan")}, {"s": {1, 2}}])
def test_cell_that_json_cannot_hold_is_refused(cell, tmp_path):
    with pytest.raises(TypeError, match=r"A cell must be a dict of numbers"):
        run_cells(square, [cell], tmp_path, progress=False)


def test_missing_result_is_named(tmp_path):
    with pytest.raises(KeyError, match=r"{'n': 1} has no result"):
        Results(tmp_path)[{"n": 1}]


def test_result_is_complete_or_absent_and_never_overwritten(tmp_path):
    results = Results(tmp_path)
    results.write({"n": 1}, {"first": True})
    results.write({"n": 1}, {"first": False})
    assert results[{"n": 1}] == {"first": True}
    assert json.loads(results.path({"n": 1}).read_text())["cell"] == {"n": 1}
    with pytest.raises(TypeError):
        results.write({"n": 2}, {"not JSON": square})
    assert list(results) == [{"n": 1}]
    assert len(list(tmp_path.iterdir())) == 1


def test_disk_that_refuses_for_good_ends_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(results_module, "PAUSES", (0.0, 0.0))
    results = Results(tmp_path / "results")
    (tmp_path / "results").rmdir()
    with (
        pytest.warns(RuntimeWarning, match="writing again"),
        pytest.raises(OSError, match=r"in 3 attempts .*make room on the disk") as caught,
    ):
        results.write({"n": 1}, 1)
    assert caught.value.__cause__.errno == errno.ENOENT


@pytest.mark.parametrize("cluster", ["local", "auto", "10.0.0.1:6379"])
def test_local_never_joins_a_cluster_that_is_running_already(cluster):
    asked = []
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **options: asked.append(options["address"]),
        shutdown=lambda: None,
    )
    with cells_module._connected(ray, cluster):
        pass
    # Ray starts its own for "local" alone; None would join the latest one on this machine.
    assert asked == [cluster]


def test_an_address_that_is_none_is_answered_with_the_rule():
    def init(**_):
        raise ValueError("Invalid address format: locl")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    connected = cells_module._connected(ray, "locl")
    with pytest.raises(ValueError, match=r"'cluster' must be None, 'local', or .* Got 'locl'"):
        connected.__enter__()


def test_cluster_without_ray_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from psilonnet.scale import run_cells\n"
        f"run_cells(len, [{{'n': 1}}], {str(tmp_path)!r}, cluster='local', progress=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'psilonnet[ray]'" in done.stderr
