"""What pruning may cost, that its zeros are there, and that the model is what is left."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import psilonnet
from estimators.messy import QUICK
from estimators.small_paths import drive, make_folds, make_settings, train
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import HeldOutWarning, fit_together
from psilonnet.estimators.problem import Problem
from psilonnet.estimators.progress import Progress
from psilonnet.estimators.pruning import (
    CUTS,
    MOST_PRUNED,
    PRUNE_STEPS,
    _sparsest_good_cut,
    prune_candidates,
)
from psilonnet.estimators.selection import HeldOut

SETTINGS = {**QUICK, "width": 64, "depth": 2, "max_steps": 100}


@pytest.fixture(scope="module")
def pruned():
    x = np.random.default_rng(0).normal(size=(100, 5))
    return PSiLONRegressor(**SETTINGS, prune=True).fit(x, x[:, 0]), x


def test_pruning_leaves_zeros_and_says_so(pruned):
    model, x = pruned
    assert model.sparsity_ > 0.3
    assert model.path_["sparsity"] == [model.sparsity_]
    assert PSiLONRegressor(**SETTINGS).fit(x, x[:, 0]).sparsity_ == 0
    assert "exact zeros" in model.summary()
    assert model.n_iter_ == 150  # the path and the pruning
    assert model.held_out_score_ > 0.8


def test_pruned_model_is_made_of_what_is_left(pruned):
    model, _ = pruned
    assert len(model.net_.parts) == model.net_.members == 2  # each fold has a shape of its own
    widths = [layer.weight.shape[1] for part in model.net_.parts for layer in part.net.layers[:-1]]
    assert max(widths) < 64
    assert all(part.weight.tolist() == [0.5] for part in model.net_.parts)
    for part in model.net_.parts:
        assert len(part.inputs) <= 5
        for layer in part.net.layers:
            assert (layer.weight[0].flatten(1) != 0).any(dim=1).all()  # no neuron without a use


def test_pruned_model_is_saved_to_the_last_bit(pruned, tmp_path):
    model, x = pruned
    model.save(tmp_path / "model")
    loaded = psilonnet.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    assert (loaded.sparsity_, loaded.path_) == (model.sparsity_, model.path_)
    assert loaded.lipschitz_bound_ == model.lipschitz_bound_
    PSiLONRegressor(**SETTINGS).fit(x, x[:, 0]).save(tmp_path / "dense")
    assert (tmp_path / "model").stat().st_size < 0.7 * (tmp_path / "dense").stat().st_size


def test_pruning_goes_on_from_the_snapshots_on_the_same_folds():
    folds, recipe = make_folds(), make_settings(width=32, reg_strength=(1e-3, 1e-2))
    held_out = HeldOut(folds.problem, folds.held)
    candidates, _ = train(folds, recipe)
    jobs = []

    def run(job):
        snapshots = candidates[len(jobs)].trained.parameters()
        for start, snapshot in zip(job.net.parameters(), snapshots, strict=True):
            assert start.equal(torch.cat([snapshot] * len(CUTS)))
        jobs.append(job)
        return job.run()

    found = drive(prune_candidates(folds, recipe, candidates, held_out, Progress(False)), run)
    assert len(jobs) == len(found) == 2
    for job, candidate, other in zip(jobs, candidates, found, strict=True):
        assert job.train.own.tolist() == [list(side) for side, _ in folds.splits] * len(CUTS)
        assert job.plan.steps == round(PRUNE_STEPS * recipe.path.steps)
        assert (other.design, other.strength) == (candidate.design, candidate.strength)
        assert other.step == candidate.step + job.plan.steps
        assert other.sparsity > 0
        # Held-out outputs are those of the numbers of the model, of the other fold's network.
        each = [
            part(folds.problem.x).numpy() / part.weight[0].item() for part in other.make_net().parts
        ]
        expected = np.where(np.arange(60)[:, None] % 2 == 1, each[0], each[1])
        np.testing.assert_allclose(other.outputs, expected, atol=1e-12)


def test_few_designs_with_l1_directions_are_pruned():
    x = np.random.default_rng(0).normal(size=(60, 3))
    settings = {**QUICK, "max_steps": 20, "reg_strength": (1e-3, 1e-2, 0.1)}
    settings["designs"] = [Design(directions="l2"), Design(), Design(pieces=2)]
    model = PSiLONClassifier(**settings, prune=True).fit(x, x[:, 0] > 0)
    assert model.designs_ == settings["designs"][1:]
    assert 1 <= len(model.path_["design"]) <= MOST_PRUNED
    assert min(model.path_["sparsity"]) > 0
    again = clone(model).fit(x, x[:, 0] > 0)
    np.testing.assert_array_equal(model.predict_proba(x), again.predict_proba(x))


def test_tables_too_small_to_choose_on_are_pruned_a_little():
    x = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(HeldOutWarning):
        model = PSiLONRegressor(**{**QUICK, "cv": None}, prune=True).fit(x, x[:, 0])
    assert model.path_ is None
    assert model.sparsity_ > 0
    assert model.net_.members == 5


def test_the_sparsest_good_cut_is_taken_else_the_best():
    y, ones = torch.zeros(4, 1), torch.ones(4)
    problem = Problem(y.double(), y, ones, ones, y[0] == 0, "squared_error", 1)

    def chosen(dense, *losses):
        usual, *rest = (np.full((4, 1), np.sqrt(loss)) for loss in (dense, *losses))
        outputs = dict(zip(CUTS, rest, strict=True))
        return CUTS.index(_sparsest_good_cut(outputs, usual, HeldOut(problem, np.arange(4))))

    assert chosen(1.0, 1.015, 0.999) == 0
    assert chosen(1.0, 1.03, 1.0) == 1
    assert chosen(1.0, 0.99, 0.9) == 1  # pruning may even help
    assert chosen(1.0, 1.2, 1.4) == 0


def test_fits_of_other_numbers_of_folds_are_pruned_as_they_are_alone():
    rng = np.random.default_rng(3)
    tables = [(x, x[:, 0] + 0.1 * rng.normal(size=60)) for x in rng.normal(size=(2, 60, 3))]
    settings = {"width": 12, "depth": 2, "max_steps": 60, "designs": [Design()], "prune": True}

    def models():
        fixed = {**settings, "reg_strength": 1e-3, "random_state": 0, "verbose": False}
        return [PSiLONRegressor(**fixed, cv=folds) for folds in (3, 2)]

    together, alone = models(), models()
    assert fit_together(together, tables) == [None, None]
    for own, joint, (x, y) in zip(alone, together, tables, strict=True):
        own.fit(x, y)
        assert joint.sparsity_ == pytest.approx(own.sparsity_, abs=0.02)
        np.testing.assert_allclose(joint.predict(x), own.predict(x), atol=0.02)
