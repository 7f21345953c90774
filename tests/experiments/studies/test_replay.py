"""Designs trained once, and recipes judged by what they left."""

import json
import sys

import numpy as np
import pytest

from experiments.data import DEVELOPMENT
from experiments.studies import replay, replay_judged
from experiments.studies.replay_judged import GiveUp, Trained, Trial, row_losses, trained

QUICK = {"width": 8, "depth": 1, "max_steps": 40, "cv": 2}
RIVALS = "model,dataset,seed,protocol,valid_loss\n" + "".join(
    f"{rival},heloc,{seed},user,{loss}\n"
    for rival, loss in (("CatBoost", 0.57), ("LightGBM", 0.6))
    for seed in (0, 1)
)


def test_tables_are_development_tables():
    assert set(DEVELOPMENT) < set(replay.TABLES)
    assert len(replay.all_cells()) == 15 * 3 * 10


def test_designs_are_trained_once_and_trials_judged_without(
    monkeypatch, tmp_path, data_dir, capsys
):
    designs = dict(list(replay.DESIGNS.items())[:2])
    for module in (replay, replay_judged):
        monkeypatch.setattr(module, "TABLES", ("heloc",))
        monkeypatch.setattr(module, "SEEDS", (0, 1))
        monkeypatch.setattr(module, "DESIGNS", designs)
    monkeypatch.setattr(replay, "SETTINGS", QUICK)
    trials = [Trial("both", tuple(designs)), Trial("first", tuple(designs)[:1])]
    monkeypatch.setattr(replay_judged, "all_trials", lambda: trials)
    (tmp_path / "rivals.csv").write_text(RIVALS)
    folders = ["--data", str(data_dir), "--cells", str(tmp_path), "--results", str(tmp_path)]

    def run(study, *words):
        monkeypatch.setattr(sys, "argv", ["study", *folders, *words])
        study.main()
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    assert run(replay)["cells"] == 4
    monkeypatch.setattr(replay, "compute", {}.__getitem__)  # what is there is not computed again
    assert run(replay)["cells"] == 4
    assert replay_judged.Replay(tmp_path, tmp_path, ["1"]).places() == [("heloc", 1)]
    assert run(replay_judged, "--only", "0", "1")["first"]["places"] == 2
    assert not (tmp_path / "replay.csv").exists()
    said = run(replay_judged)
    assert said["first"]["trial"] == "both"
    assert said["first"]["places"] == 2
    assert said["first"]["over_first"] == 1
    assert said["first"]["median_member_steps"] == 5 * 2 * 40
    assert 0.8 < said["best"]["over_catboost"] < 1.5
    assert (
        len((tmp_path / "replay.csv").read_text().splitlines()) == 1 + 2 + 3
    )  # sets of one and of two grow


def path(losses):
    """Return a design with five evaluations, the second of them at the end of the level part."""
    steps = [20, 40, 60, 80, 100]
    known = {"steps": steps, "strengths": [1.0, 1.0, 2.0, 4.0, 8.0], "bounds": [1.0] * 5}
    known |= {"seconds": 10.0, "history": {"step": steps, "valid_loss": losses}}
    return Trained(known, np.zeros((5, 3, 1)), np.zeros((5, 3, 1)))


def test_a_hopeless_design_is_given_up_with_what_it_has():
    good, bad = path([1.0] * 5), path([1.0, 2.0, 2.0, 2.0, 0.5])
    rule = GiveUp(share=0.5, excess=0.15)
    first, second = trained([good, bad], rule)
    assert len(first.valid) == 5
    assert len(second.valid) == 4
    assert second.known["taken"] == 80
    assert second.known["seconds"] == pytest.approx(8.0)
    assert [len(p.valid) for p in trained([good, bad], None)] == [5, 5]
    assert [len(p.valid) for p in trained([bad, good], rule)] == [5, 4]  # the best so far is 0.5


def test_losses_of_rows():
    y = np.array([[0.0], [1.0]])
    assert row_losses("regression", np.array([[3.0], [1.0]]), y).tolist() == [9.0, 0.0]
    logits = np.array([[2.0], [2.0]])
    two = row_losses("classification", logits, y)
    assert two == pytest.approx(np.log1p(np.exp([2.0, -2.0])))
    both = np.concatenate([np.zeros_like(logits), logits], axis=1)
    assert row_losses("classification", both, y) == pytest.approx(two)
