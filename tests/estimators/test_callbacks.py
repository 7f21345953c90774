"""Callbacks of a fit: they are told of every training, and change nothing by listening."""

import json
import os
import subprocess
import sys

import pytest

from estimators.messy import QUICK, messy
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.training import Callback, Checkpoints

DESIGNS = [Design(), Design(directions="l2")]


class Listener(Callback):
    """Notes what it is told."""

    def __init__(self):
        self.told = {}

    def _note(self, event, run):
        self.told.setdefault(run.name, []).append((event, run.step))
        self.members = len(run.members)

    def on_start(self, run):
        self._note("start", run)

    def on_step(self, run):
        self._note("step", run)

    def on_evaluation(self, run):
        self._note("evaluation", run)
        assert run.history.step[-1] == run.step
        assert run.history.valid_loss[-1].isfinite().all() or run.name.startswith("pruning")

    def on_end(self, run):
        self._note("end", run)


def test_callbacks_are_told_of_every_training():
    frame, labels, _ = messy()
    listener = Listener()
    settings = {**QUICK, "designs": DESIGNS, "prune": False}
    model = PSiLONClassifier(**settings).fit(frame, labels, callbacks=[listener])
    assert list(listener.told) == ["L1", "L2"]
    assert listener.members == 2  # a network for each fold
    for told in listener.told.values():
        assert told[0] == ("start", 0)
        assert told[-1] == ("end", 60)
        steps = [step for event, step in told if event == "step"]
        assert steps == list(range(1, 61))
        assert ("evaluation", 60) in told
    silent = PSiLONClassifier(**settings).fit(frame, labels)
    assert (silent.predict_proba(frame) == model.predict_proba(frame)).all()


def test_callbacks_are_told_of_pruning():
    frame, _, score = messy()
    listener = Listener()
    PSiLONRegressor(**QUICK, prune=True).fit(frame, score, callbacks=(listener,))
    assert list(listener.told) == ["L1", "pruning L1"]


def test_an_exception_of_a_callback_ends_the_fit():
    class Impatient(Callback):
        def on_step(self, run):
            if run.step == 7:
                raise TimeoutError("No time is left.")

    frame, _, score = messy()
    model = PSiLONRegressor(**QUICK)
    with pytest.raises(TimeoutError, match="No time"):
        model.fit(frame, score, callbacks=[Impatient()])
    assert not hasattr(model, "net_")


def test_callbacks_are_checked(tmp_path):
    frame, _, score = messy()
    model = PSiLONRegressor(**QUICK)
    for given in ([print], Callback(), [Callback]):
        with pytest.raises(TypeError, match=r"must be a list of psilonnet\.training\.Callback"):
            model.fit(frame, score, callbacks=given)
    with pytest.raises(ValueError, match="leave it out, or use it with a"):
        model.fit(frame, score, callbacks=[Checkpoints(tmp_path / "run")])


@pytest.mark.long
def test_the_example_logs_every_evaluation(repo, tmp_path):
    example = repo / "examples" / "plot_8_log_a_fit.py"
    subprocess.run(
        [sys.executable, str(example)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    lines = [json.loads(line) for line in (tmp_path / "fit.jsonl").read_text().splitlines()]
    assert {line["training"] for line in lines} == {"L1", "L2"}
    assert all(len(line["valid_loss"]) == 5 for line in lines)
