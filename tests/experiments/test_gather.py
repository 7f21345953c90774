"""Results of a study: single cells and lines are read as one, and gathered always the same way."""

import json
import sys
from argparse import Namespace

import pytest

from experiments import gather
from experiments.cells import run_study
from experiments.comparison import costs, learning_curves, rivals
from experiments.gather import StudyResults
from experiments.paper import tabular
from psilonnet.scale import Results, cell_key


def filled(folder, numbers, factor=1.0):
    results = Results(folder)
    for n in numbers:
        results.write({"n": n, "kind": "square"}, {"value": factor * n * n, "also": [n]})


def test_single_cells_and_lines_are_read_as_one(tmp_path):
    filled(tmp_path / "study", [3, 1])
    assert StudyResults(tmp_path / "study").gather() == 2
    assert list((tmp_path / "study").iterdir()) == []
    filled(tmp_path / "study", [2])
    results = StudyResults(tmp_path / "study")
    assert [cell["n"] for cell in results] == [1, 2, 3]
    assert len(results) == 3
    assert [results[{"kind": "square", "n": n}]["value"] for n in (1, 2, 3)] == [1.0, 4.0, 9.0]
    assert {"n": 4, "kind": "square"} not in results
    with pytest.raises(KeyError, match=r"The cell .* has no result in .* yet"):
        results[{"n": 4, "kind": "square"}]


def test_a_single_cell_counts_before_its_line(tmp_path):
    cell = {"n": 2, "kind": "square"}
    filled(tmp_path / "study", [2])
    StudyResults(tmp_path / "study").gather()
    filled(tmp_path / "study", [2], factor=10.0)
    results = StudyResults(tmp_path / "study")
    assert results[cell]["value"] == 40.0
    assert len(results) == 1
    results.gather()
    assert StudyResults(tmp_path / "study")[cell]["value"] == 40.0


def test_gathered_lines_do_not_depend_on_the_order_of_the_work(tmp_path):
    for name, numbers in (("a", [1, 2, 30]), ("b", [30, 2, 1])):
        for n in numbers:
            filled(tmp_path / name, [n])
            if n == 2:
                StudyResults(tmp_path / name).gather()
        StudyResults(tmp_path / name).gather()
    first = (tmp_path / "a.jsonl").read_bytes()
    assert first == (tmp_path / "b.jsonl").read_bytes()
    assert StudyResults(tmp_path / "a").gather() == 0
    assert first == (tmp_path / "a.jsonl").read_bytes()
    assert json.loads(first.splitlines()[0]) == {
        "cell": {"n": 1, "kind": "square"},
        "result": {"value": 1.0, "also": [1]},
    }


def test_results_that_are_read_can_be_changed_without_changing_the_study(tmp_path):
    cell = {"n": 2, "kind": "square"}
    filled(tmp_path / "study", [2])
    results = StudyResults(tmp_path / "study")
    results.gather()
    results[cell]["also"].append(5)
    assert results[cell]["also"] == [2]


def test_a_whole_run_gathers_its_cells_and_a_part_of_it_does_not(tmp_path):
    computed = []

    def compute(cell, *, data):
        computed.append(cell["n"])
        if cell["n"] == failing:
            raise ValueError("too large")
        return {"value": cell["n"]}

    failing = 3
    cells = [{"n": n} for n in (1, 2, 3)]
    arguments = Namespace(data="none", cells=tmp_path, only=["2"], cluster=None)
    run_study("study", compute, cells, arguments)
    assert not (tmp_path / "study.jsonl").exists()
    arguments.only = None
    with pytest.raises(Exception, match="too large"):
        run_study("study", compute, cells, arguments)
    assert not (tmp_path / "study.jsonl").exists()  # what is there stays in single files
    failing = None
    results = run_study("study", compute, cells, arguments)
    assert len((tmp_path / "study.jsonl").read_text().splitlines()) == 3
    assert list((tmp_path / "study").iterdir()) == []
    assert [results[cell]["value"] for cell in cells] == [1, 2, 3]
    assert computed == [2, 1, 3, 3]
    again = run_study("study", compute, cells, arguments)
    assert [again[cell]["value"] for cell in cells] == [1, 2, 3]
    assert computed == [2, 1, 3, 3]


def test_a_command_gathers_studies_by_their_names(tmp_path, monkeypatch, capsys):
    filled(tmp_path / "study", [1, 2])
    monkeypatch.setattr(sys, "argv", ["gather", "study", "--cells", str(tmp_path)])
    gather.main()
    assert capsys.readouterr().out == "study: 2 cells gathered, 2 in all.\n"
    assert len((tmp_path / "study.jsonl").read_text().splitlines()) == 2
    monkeypatch.setattr(sys, "argv", ["gather", "studies", "--cells", str(tmp_path)])
    with pytest.raises(SystemExit):
        gather.main()
    assert "must have a folder of cells" in capsys.readouterr().err
    assert not (tmp_path / "studies").exists()


@pytest.mark.parametrize("study", [costs, learning_curves, rivals, tabular])
def test_committed_studies_have_all_their_cells(study, repo, tmp_path):
    name = study.__name__.rpartition(".")[2]
    committed = (repo / "experiments" / "results" / "cells" / f"{name}.jsonl").read_bytes()
    (tmp_path / f"{name}.jsonl").write_bytes(committed)
    results = StudyResults(tmp_path / name)
    assert [cell for cell in study.cells() if cell not in results] == []
    assert len(results) == len(list(study.cells()))


def test_committed_lines_are_as_gathering_writes_them(repo):
    files = sorted((repo / "experiments" / "results" / "cells").glob("*.jsonl"))
    assert len(files) > 10
    for path in files:
        lines = path.read_text().splitlines()
        keys = [cell_key(json.loads(line)["cell"]) for line in lines]
        assert keys == sorted(set(keys)), path.name
        assert lines == [json.dumps(json.loads(line)) for line in lines], path.name
