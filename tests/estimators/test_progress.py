"""One bar for a whole fit, or lines for logs."""

import io
import re
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from tqdm import tqdm

from estimators.messy import SMALL
from estimators.small_paths import make_folds, make_settings, train
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import progress as progress_module
from psilonnet.estimators.problem import View
from psilonnet.estimators.progress import Progress, _step_cost

TWO = {**SMALL, "max_steps": 20, "designs": [Design(), Design(pieces=2)], "reg_strength": 1e-3}
X = np.random.default_rng(0).normal(size=(60, 2))


class Bar(tqdm):
    """A bar that is drawn nowhere, and keeps what it was told."""

    made: ClassVar[list] = []

    def __init__(self, *arguments, **options):
        self.stages, self.notes = [], []
        super().__init__(*arguments, file=io.StringIO(), **options)
        Bar.made.append(self)

    def set_description_str(self, desc=None, refresh=True):
        self.stages.append(desc)
        super().set_description_str(desc, refresh)

    def set_postfix_str(self, s="", refresh=True):
        self.notes.append(s)
        super().set_postfix_str(s, refresh)


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr(progress_module, "tqdm", Bar)
    monkeypatch.setattr(Bar, "made", [])
    return Bar.made


@pytest.mark.parametrize("prune", [False, True])
def test_fit_has_one_bar_that_ends_full(prune, bars, capsys):
    PSiLONRegressor(**TWO, verbose=True, prune=prune).fit(X, X[:, 0])
    (bar,) = bars
    stages = ["Fitting (L1)", "Fitting (L1, 2 pieces)"]
    assert bar.stages[:2] == stages
    assert all(stage.startswith("Fitting (pruning L1") for stage in bar.stages[2:])
    assert (len(bar.stages) > 2) == prune
    assert bar.n == pytest.approx(bar.total)
    assert bar.disable  # closed
    assert re.fullmatch(r"held-out loss [\d.e-]+", bar.notes[-1])
    assert re.fullmatch(r"On held-out rows: R\^2 0\.\d+\.\n", capsys.readouterr().err)


@pytest.mark.parametrize(("columns", "shown"), [("60", False), ("80", True)])
def test_bar_of_a_narrow_terminal_has_no_loss_instead_of_half_of_it(
    columns, shown, bars, monkeypatch
):
    monkeypatch.setenv("COLUMNS", columns)
    PSiLONRegressor(**TWO, verbose=True).fit(X, X[:, 0])
    (bar,) = bars
    assert bool(bar.notes) == shown


def test_bar_of_paths_that_are_extended_or_given_up_ends_full(bars):
    designs = [Design(directions="l2"), Design()]
    folds, recipe = make_folds(), replace(make_settings(designs=designs), may_extend=True)
    progress = Progress(True)
    _, (extended, given_up) = train(folds, recipe, progress)
    progress.end("")
    assert extended["step"][-1] > given_up["step"][-1] > recipe.path.steps
    (bar,) = bars
    assert bar.n == pytest.approx(bar.total)


def test_bar_of_a_stopped_fit_is_closed_before_its_traceback_is_shown(bars, monkeypatch):
    def press(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "step", press)
    with pytest.raises(KeyboardInterrupt) as stopped:
        PSiLONRegressor(**TWO, verbose=True).fit(X, X[:, 0])
    (bar,) = bars
    assert bar.disable  # while the traceback is held
    assert stopped.tb is not None


def test_real_bar_names_its_stages(capsys):
    PSiLONRegressor(**TWO, verbose=True).fit(X, X[:, 0])
    said = capsys.readouterr().err
    assert "Fitting (L1" in said
    assert " left" in said
    assert said.rstrip().splitlines()[-1].endswith(".")


def test_lines_for_logs_are_whole_lines(bars, capsys):
    PSiLONClassifier(**TWO, verbose=2).fit(X, X[:, 0] > 0)
    assert bars == []
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["L1: 20 steps.", "L1, 2 pieces: 20 steps."]
    assert re.fullmatch(r"On held-out rows: accuracy .*\.", lines[2])
    assert len(lines) == 3


def test_nothing_is_shown_unless_it_is_asked_for(bars, capsys):
    for verbose in (False, "auto", np.False_):  # no terminal here
        PSiLONRegressor(**{**TWO, "max_steps": 2}, verbose=verbose).fit(X, X[:, 0])
    assert bars == []
    assert capsys.readouterr().err == ""


def test_steps_of_larger_networks_count_more():
    problem = make_folds().problem
    small, large = (View(problem, Design(pieces=k), 128, 3, 0) for k in (1, 8))
    assert _step_cost(large) - _step_cost(small) == 7 * 2 * 128


def test_silent_progress_takes_everything_and_shows_nothing(bars, capsys):
    quiet, view = Progress(False), View(make_folds().problem, Design(), 8, 1, 0)
    quiet.plan([(view, 10)])
    quiet.begin("L1", 10, view)
    quiet.step()
    quiet.extend(3)
    quiet.tell(0.5)
    quiet.end("done")
    assert (bars, capsys.readouterr().err) == ([], "")
