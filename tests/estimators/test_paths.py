"""One warm path per fold: where snapshots are taken, how long it is, and networks that are lost."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from estimators.messy import SMALL
from estimators.small_paths import make_folds, make_settings, train
from psilonnet import Design, PSiLONRegressor
from psilonnet.estimators.paths import (
    GIVE_UP_FROM,
    LONGEST,
    PART,
    LostNetworksWarning,
    _history_of,
    _path_job,
    _PathKeeper,
    make_candidate,
    warn_lost,
)
from psilonnet.estimators.problem import View
from psilonnet.estimators.progress import Progress
from psilonnet.estimators.recipe import PASSED, SNAPSHOTS, _auto_factor
from psilonnet.training import DivergedError


def run_path(folds, recipe, design=None, best=float("inf")):
    """Train one design; return what was kept of it, and the finished run."""
    view = View(folds.problem, design or recipe.designs[0], recipe.width, recipe.depth, seed=0)
    keeper = _PathKeeper(recipe, len(folds.splits), Progress(False), best)
    return keeper, _path_job(view, folds, recipe, keeper).run()


# Snapshots.


def test_fixed_strength_is_where_the_path_ends():
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONRegressor(**{**SMALL, "reg_strength": 0.3}).fit(x, x[:, 0])
    assert model.reg_strength_ == 0.3
    assert model.path_["reg_strength"] == [0.3]
    assert model.path_["steps"] == [60] == [model.n_iter_]
    assert model.members_ == {"weight": [1.0], "design": [0.0], "reg_strength": [0.3]}


def test_several_strengths_are_where_snapshots_are_taken():
    x = np.random.default_rng(0).normal(size=(60, 2))
    settings = {**SMALL, "reg_strength": (0.1, 1e-3, 1e-2), "designs": [Design(), Design(pieces=2)]}
    model = PSiLONRegressor(**settings).fit(x, x[:, 0])
    assert model.path_["reg_strength"] == [1e-3, 1e-2, 0.1] * 2
    assert model.path_["design"] == [0.0] * 3 + [1.0] * 3
    assert model.path_["steps"] == [24, 42, 60] * 2
    assert set(model.members_["reg_strength"]) <= {1e-3, 1e-2, 0.1}


def test_automatic_strengths_follow_the_rows():
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONRegressor(**SMALL).fit(x, x[:, 0])
    strengths = sorted(set(model.path_["reg_strength"]))
    assert len(strengths) == SNAPSHOTS
    assert strengths[0] == pytest.approx(5e-5 * _auto_factor(60))
    assert strengths[-1] == pytest.approx(0.1 * _auto_factor(60))


def test_snapshots_are_averages_of_the_weights_where_their_strength_is_reached():
    recipe = make_settings(reg_strength=(1e-3, 1e-2))
    keeper, run = run_path(make_folds(), recipe)
    assert [(taken.strength, taken.step) for taken in keeper.snapshots] == [(1e-3, 20), (1e-2, 50)]
    for a, b in zip(
        keeper.snapshots[-1].net.parameters(), run.averaged_net().parameters(), strict=True
    ):
        assert a.equal(b)
    first, last = (taken.net.layers[0].direction for taken in keeper.snapshots)
    assert (first != last).any()


def test_held_out_outputs_are_those_of_networks_that_never_saw_the_rows():
    folds = make_folds()
    (candidate, *_), (history, *_) = train(folds, make_settings(reg_strength=1e-2))
    net = candidate.make_net()
    (part,) = net.parts
    x = folds.problem.x
    each = [part.net.member(k)(part.see(x))[0].numpy() for k in range(2)]
    expected = np.where(np.arange(60)[:, None] % 2 == 1, each[0], each[1])
    np.testing.assert_allclose(candidate.outputs, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(net(x).numpy(), (each[0] + each[1]) / 2, atol=1e-12)
    loss = np.mean((candidate.outputs - folds.problem.y.numpy()) ** 2)
    assert history["valid_loss"][-1] == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("design", [Design(), Design(directions="l2", pieces=3, columns="clipped")])
def test_model_is_made_of_numbers_of_float32(design):
    recipe = make_settings(designs=[design], reg_strength=1e-2, max_steps=10)
    (candidate, *_), _ = train(make_folds(), recipe)
    for layer in candidate.make_net().parts[0].net.layers:
        for tensor in (layer.weight, layer.bias):
            assert tensor.dtype == torch.float64
            assert tensor.equal(tensor.float().double())


def test_candidates_tell_what_they_are():
    folds, recipe = make_folds(), make_settings(reg_strength=1e-2, max_steps=10)
    keeper, _ = run_path(folds, recipe)
    view = View(folds.problem, recipe.designs[0], recipe.width, recipe.depth, 0)
    candidate = make_candidate(4, view, folds, *keeper.snapshots[0])
    assert (candidate.design, candidate.strength, candidate.step) == (4, 1e-2, 10)
    assert candidate.sparsity == 0 <= candidate.near_sparsity <= 1
    x = folds.problem.x
    moved = candidate.make_net()(x + 0.5) - candidate.make_net()(x)
    assert float(moved.abs().max()) <= 0.5 * candidate.bound


# How long a path is.


def test_level_part_goes_on_while_the_held_out_loss_falls():
    recipe = replace(make_settings(reg_strength=1e-2), may_extend=True)
    keeper, run = run_path(make_folds(), recipe)
    block = round(PART * recipe.path.level)
    extra = keeper.path.level - recipe.path.level
    assert extra > 0
    assert extra % block == 0
    assert keeper.path.level <= LONGEST * recipe.path.level + block
    assert run.step == recipe.path.steps + extra
    assert [taken.step for taken in keeper.snapshots] == [run.step]
    losses = dict(zip(run.history.step, run.history.valid_loss.mean(dim=1).tolist(), strict=True))
    for step in range(recipe.path.level, keeper.path.level, block):
        assert losses[step] < 0.99 * losses[step - block]
    history = _history_of(run)
    assert history["step"][-1] == run.step
    assert not np.isnan(history["train_loss"]).any()


def test_level_part_ends_where_there_is_nothing_to_learn():
    noise = np.random.default_rng(1).normal(size=60)
    recipe = replace(make_settings(reg_strength=1e-2, max_steps=100), may_extend=True)
    keeper, run = run_path(make_folds(noise), recipe)
    assert keeper.path.level <= recipe.path.level
    assert run.step == keeper.path.steps <= 100
    fixed, run = run_path(make_folds(), make_settings(reg_strength=1e-2))
    assert fixed.path.steps == run.step == 50  # so many steps were asked for


def learnt_by_heart(**parameters):
    """Return folds of noise on many columns, and a recipe that learns them by heart."""
    rng = np.random.default_rng(2)
    folds = make_folds(rng.normal(size=60), x=rng.normal(size=(60, 20)))
    return folds, replace(make_settings(max_steps=200, **parameters), may_extend=True)


def test_level_part_ends_early_where_the_held_out_loss_rises():
    folds, recipe = learnt_by_heart()
    recipe = replace(recipe, passed=PASSED)
    keeper, run = run_path(folds, recipe)
    losses = dict(zip(run.history.step, run.history.valid_loss.mean(dim=1).tolist(), strict=True))
    level = keeper.path.level
    before = [loss for step, loss in losses.items() if step <= level]
    assert 0 < level < recipe.path.level
    assert before[-1] > 1.02 * min(before)
    assert all(loss <= 1.02 * min(before[: k + 1]) for k, loss in enumerate(before[:-1]))
    weakest, *others = recipe.path.strengths
    assert keeper.path.strengths == (weakest, *others[PASSED:])
    assert run.step == keeper.path.steps < recipe.path.steps
    taken = [(round(s.strength / recipe.factor, 9), s.step) for s in keeper.snapshots]
    early = [(weakest, step) for step in recipe.early if step < level]
    ends = list(zip(keeper.path.strengths, keeper.path.marks, strict=True))
    assert taken == [(round(s, 9), step) for s, step in early + ends]


def test_strengths_that_were_asked_for_are_not_passed_over():
    folds, recipe = learnt_by_heart(reg_strength=(1e-5, 1e-4, 1e-3))
    assert recipe.passed == 0
    keeper, _ = run_path(folds, recipe)
    assert keeper.path.level < recipe.path.level
    assert [taken.strength for taken in keeper.snapshots] == [1e-5, 1e-4, 1e-3]


def test_hopeless_design_is_given_up_once_its_path_is_well_under_way():
    recipe = replace(make_settings(max_steps=100, learning_rate=1e-3), may_extend=True)
    noise = np.random.default_rng(1).normal(size=60)
    keeper, run = run_path(make_folds(noise), recipe, best=1e-3)
    begins = keeper.path.level + GIVE_UP_FROM * keeper.path.rise
    assert begins <= run.step < keeper.path.steps
    assert keeper.snapshots  # what it had reached is a candidate still
    whole, run = run_path(make_folds(noise), recipe, best=1e3)
    assert run.step == whole.path.steps


def test_designs_take_the_best_loss_from_each_other():
    designs = [Design(), Design(directions="l2"), Design(pieces=2)]
    candidates, histories = train(make_folds(), make_settings(designs=designs, reg_strength=1e-2))
    assert [candidate.design for candidate in candidates] == [0, 1, 2]
    assert len(histories) == 3
    assert [history["step"][-1] for history in histories] == [50] * 3


# Networks that are lost.

WILD = {**SMALL, "depth": 3, "max_steps": 30, "learning_rate": 10.0, "reg_strength": (1e-3, 1e-2)}


def test_design_that_diverges_leaves_the_others():
    x = np.random.default_rng(0).normal(size=(60, 2))
    steady, wild = Design(), Design(directions="l2")
    model = PSiLONRegressor(**{**WILD, "designs": [wild, steady]})
    with pytest.warns(LostNetworksWarning, match=r"design 'L2' is left out. All 2 members"):
        model.fit(x, x[:, 0])
    assert set(model.path_["design"]) == {1.0}
    assert model.designs_ == [wild, steady]
    alone = PSiLONRegressor(**{**WILD, "designs": [steady]}).fit(x, x[:, 0])
    np.testing.assert_array_equal(model.predict(x), alone.predict(x))
    with pytest.raises(DivergedError, match=r"All 2 members diverged.*Lower the learning rate"):
        PSiLONRegressor(**{**WILD, "designs": [wild]}).fit(x, x[:, 0])


def test_networks_that_diverge_are_counted_and_the_design_has_no_further_snapshots():
    y = np.random.default_rng(0).normal(size=60)
    y[6] = 1e30  # only the first network learns from it
    recipe = make_settings(reg_strength=(1e-3, 1e-2))
    keeper, run = run_path(make_folds(y), recipe)
    assert run.members == [1]
    assert keeper.snapshots == []
    with pytest.warns(LostNetworksWarning, match=r"1 of 2 networks of the design 'L1' diverged .*"):
        warn_lost(run, recipe.designs[0])
    assert _history_of(run)["step"][-1] == 50
    lost = pytest.warns(LostNetworksWarning, match="the first at step 1 with loss")
    with lost, pytest.raises(DivergedError):
        train(make_folds(y), recipe)


def test_run_without_losses_is_not_warned_about():
    recipe = make_settings(reg_strength=1e-2, max_steps=5)
    _, run = run_path(make_folds(), recipe)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_lost(run, recipe.designs[0])
