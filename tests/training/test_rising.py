"""The strength rises during one training: where it is when, and how fast the network learns."""

import math

import pytest
import torch

from psilonnet.training import Callback, Plan, RisingPath
from psilonnet.training.rising import DECAY, LAST_RATE
from training.small_runs import run_of, small_net

PATH = RisingPath((1e-4, 1e-3, 1e-1), level=40, rise=60, learning_rate=4e-3)


def at(path, step, what="strength"):
    """Return the strength or rate with which a step is taken, as a run asks for it."""
    return getattr(path, what)(step / (path.steps - 1))


def test_strengths_are_reached_at_their_marks():
    assert PATH.steps == 100
    assert PATH.marks == (40, 70, 100)
    for step in range(41):
        assert at(PATH, step) == pytest.approx(1e-4)
    assert at(PATH, 55) == pytest.approx(math.sqrt(1e-4 * 1e-3))  # even in the logarithm
    assert at(PATH, 70) == pytest.approx(1e-3)
    assert at(PATH, 85) == pytest.approx(1e-2)
    assert at(PATH, 99) == pytest.approx(1e-1 * 100 ** (-1 / 30))  # the last step before the mark
    strengths = [at(PATH, step) for step in range(100)]
    assert strengths == sorted(strengths)


def test_strength_may_begin_at_nothing():
    path = RisingPath((0.0, 1e-2, 1e-1), level=10, rise=20, learning_rate=1e-3)
    assert [at(path, step) for step in (0, 9, 10)] == pytest.approx([0, 0, 0])
    assert at(path, 15) == pytest.approx(5e-3)  # straight where there is no logarithm
    assert at(path, 25) == pytest.approx(math.sqrt(1e-3))


def test_one_strength_is_the_same_all_the_way():
    path = RisingPath((3e-3,), level=4, rise=6, learning_rate=1e-3)
    assert path.marks == (10,)
    assert {at(path, step) for step in range(10)} == {3e-3}


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_fewer_steps_than_strengths_are_no_obstacle(steps):
    path = RisingPath((1e-4, 1e-3, 1e-2, 1e-1), level=steps // 2, rise=-(-steps // 2),
                      learning_rate=1e-3)  # fmt: skip
    assert path.steps == path.marks[-1] == steps
    for share in (0.0, 0.5, 1.0):
        assert 1e-4 <= path.strength(share) <= 1e-1 * (1 + 1e-12)
        assert 0 < path.rate(share) <= 1e-3


def test_rate_is_level_and_then_falls_to_a_quarter():
    path = RisingPath((1e-4, 1e-1), level=400, rise=600, learning_rate=4e-3)
    rates = [at(path, step, "rate") for step in range(1000)]
    assert rates[0] == pytest.approx(4e-3 / 50)  # it is warmed up
    assert rates[:50] == sorted(rates[:50])
    assert set(rates[50:401]) == {4e-3}
    assert rates[700] == pytest.approx(4e-3 * (1 - (1 - LAST_RATE) / 2))
    assert rates[400:] == sorted(rates[400:], reverse=True)
    assert rates[-1] == pytest.approx(4e-3 * LAST_RATE, rel=0.01)


def test_extension_moves_what_follows_and_nothing_before():
    longer = PATH.extended(25)
    assert longer.steps == 125
    assert longer.marks == (65, 95, 125)
    assert longer.strengths == PATH.strengths
    for step in range(41):
        assert at(longer, step) == pytest.approx(at(PATH, step))
    for step in range(20, 41):  # warmed up
        assert at(longer, step, "rate") == at(PATH, step, "rate") == 4e-3
    for step in range(40, 100):
        assert at(longer, step + 25) == pytest.approx(at(PATH, step))
        assert at(longer, step + 25, "rate") == pytest.approx(at(PATH, step, "rate"))


def test_path_that_is_shortened_rises_sooner_past_the_weakest_strengths():
    path = RisingPath((1e-4, 1e-3, 1e-2, 1e-1), level=40, rise=60, learning_rate=4e-3)
    shorter = path.shortened(25, passed=1)
    assert shorter.strengths == (1e-4, 1e-2, 1e-1)
    assert shorter.marks == (25, 45, 65)  # as many steps between strengths as before
    assert at(shorter, 25) == pytest.approx(1e-4)
    assert at(shorter, 45) == pytest.approx(1e-2)
    assert shorter.shortened(25, passed=0) == shorter
    none = path.shortened(30, passed=0)
    assert none == path.extended(-10)


def test_plan_of_a_path_keeps_what_is_not_of_the_path():
    plan = PATH.plan(Plan(batch_size=7, seed=3, progress=False))
    assert (plan.steps, plan.marks, plan.average) == (100, (40, 70, 100), DECAY)
    assert (plan.batch_size, plan.seed, plan.progress) == (7, 3, False)
    assert plan.strength(0.7) == PATH.strength(0.7)
    assert plan.schedule(0.7) == PATH.rate(0.7)


class _Extend(Callback):
    """Extends the level part while it is trained."""

    def __init__(self, path):
        self.path, self.used, self.snapshots = path, [], []

    def on_step(self, run):
        self.used.append(float(run._strengths[0]))

    def on_evaluation(self, run):
        self.snapshots.append(run.step)
        if run.step == 40:
            self.path = self.path.extended(20)
            run.plan = self.path.plan(run.plan)


def test_run_trains_along_a_path_that_is_extended_on_the_way():
    keeper = _Extend(PATH)
    plan = PATH.plan(Plan(progress=False))
    net = small_net(count=1)
    run = run_of(
        net, strengths=2.0, steps=100, callbacks=[keeper], schedule=plan.schedule,
        strength=plan.strength, average=plan.average, marks=plan.marks, evaluate_every=1000,
    )  # fmt: skip
    run.train()
    assert run.step == 120
    assert keeper.snapshots == [40, 60, 90, 120]
    expected = [2 * at(keeper.path, step) for step in range(120)]
    assert keeper.used == pytest.approx(expected, rel=1e-5)
    assert torch.stack([p.isfinite().all() for p in run.net.parameters()]).all()
