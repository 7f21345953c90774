"""What watches a run, and the narrowing of its members."""

import pytest
import torch

from psilonnet.training import (
    Callback,
    DivergedError,
    Narrowing,
    Rows,
    narrow,
)
from training.small_runs import problem, run_of, small_net


def test_narrowing_keeps_the_best_and_its_stronger_neighbours():
    strengths = torch.tensor([1e-3, 10.0, 1e-2, 100.0, 1e-4])
    run = run_of(
        small_net(count=5), strengths=strengths, callbacks=[Narrowing([(0.25, 3), (0.5, 1)])]
    )
    run.train()
    lines = run.history.valid_loss
    assert lines.isfinite().sum(dim=-1).tolist() == [5, 3, 1, 1]
    order = [4, 0, 2, 1, 3]  # members by strength
    best = order.index(int(lines[0].argmin()))
    first = min(best, 2)
    assert set(lines[1].isfinite().nonzero().flatten().tolist()) == set(order[first : first + 3])


def test_narrowing_fills_up_at_the_strong_end():
    assert narrow([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 2) == [1, 2]
    assert narrow([3.0, 2.0, 1.0], [1.0, 2.0, float("nan")], 2) == [0, 1]
    assert narrow([1.0, 2.0], [1.0, 2.0], 5) == [0, 1]


def test_progress_bar_can_be_turned_off(capsys):
    run_of(small_net(), steps=5).train()
    assert capsys.readouterr() == ("", "")
    run_of(small_net(), steps=5, progress=True).train()
    assert "/5 [" in capsys.readouterr().err


def test_members_of_equal_strength_are_dropped_together():
    strengths = torch.tensor([1e-4, 1e-4, 1e-2, 1e-2, 10.0, 10.0])
    run = run_of(small_net(count=6), strengths=strengths, callbacks=[Narrowing([(0.5, 1)])])
    run.train()
    assert len(run.members) == 2
    assert len(set(strengths[run.members].tolist())) == 1


def test_error_of_an_early_callback_is_not_hidden():
    class Broken(Callback):
        def on_start(self, run):
            raise ValueError("original")

    with pytest.raises(ValueError, match="original"):
        run_of(small_net(), progress=True, callbacks=[Broken()]).train()


def test_narrowing_needs_held_out_rows():
    train, _ = problem()
    run = run_of(small_net(), rows=(train, None), callbacks=[Narrowing()])
    with pytest.raises(ValueError, match=r"Narrowing needs held-out rows.*valid_rows"):
        run.train()


def test_narrowing_without_any_finite_loss_is_an_error():
    train, valid = problem()
    spoilt = Rows(valid.x, valid.y * torch.nan)
    strengths = torch.tensor([1e-3, 1e-2, 1e-1])
    run = run_of(
        small_net(), strengths=strengths, rows=(train, spoilt), callbacks=[Narrowing([(0.5, 1)])]
    )
    with pytest.raises(DivergedError, match="No member has a finite loss on the held-out rows"):
        run.train()


@pytest.mark.parametrize("rung", [(0.5, 0), (0.0, 2), (1.5, 2)])
def test_narrowing_refuses_rungs_that_keep_nobody_or_never_come(rung):
    with pytest.raises(ValueError, match=r"fraction above 0 and at most 1.*at least one strength"):
        Narrowing([rung])
