"""Models fitted side by side are those fitted alone."""

import numpy as np
import pytest
from sklearn.base import clone

from estimators.messy import SMALL
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import joint_fit
from psilonnet.estimators.joint_fit import Job, fit_together
from psilonnet.training import members_of

QUICK = {**SMALL, "max_steps": 40}
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3)
L2 = {**QUICK, "designs": [Design(), Design(directions="l2", pieces=3)]}


@pytest.fixture
def trained(monkeypatch):
    """Return how many networks each population had, in the order of their training."""
    sizes, run = [], Job.run

    def counted(job):
        sizes.append(members_of(job.net))
        return run(job)

    monkeypatch.setattr(joint_fit.Job, "run", counted)
    return sizes


@pytest.mark.parametrize(
    ("estimator", "networks"),
    [
        (FIXED, [6]),
        (PSiLONRegressor(**{**L2, "cv": 3}, reg_strength=1e-3), [9, 9]),
        (PSiLONRegressor(**QUICK, prune=True, reg_strength=1e-3), [6, 12]),
        (PSiLONClassifier(**QUICK), [6]),
        (PSiLONClassifier(**{**QUICK, "designs": [Design(architecture="resnet")]}), [6]),
        (PSiLONRegressor(**{**QUICK, "cv": None}, reg_strength=(1e-3, 1e-1)), [15]),
    ],
    ids=["fixed", "designs and folds", "pruned", "automatic", "resnet", "five folds"],
)
def test_models_fitted_together_are_those_fitted_alone(estimator, networks, trained):
    rng = np.random.default_rng(0)
    tables = []
    for n in (40, 60, 41):
        x = rng.normal(size=(n, 3))
        y = x[:, 0] + np.abs(x[:, 1])
        tables.append((x, y > 0.5 if isinstance(estimator, PSiLONClassifier) else y))
    together = [clone(estimator) for _ in tables]
    assert fit_together(together, tables) == [None] * 3
    assert trained == networks  # of all three tables
    for model, (x, y) in zip(together, tables, strict=True):
        alone = clone(estimator).fit(x, y)
        assert model.lipschitz_bound_ == pytest.approx(alone.lipschitz_bound_, rel=1e-2)
        name = "predict_proba" if isinstance(estimator, PSiLONClassifier) else "predict"
        np.testing.assert_allclose(getattr(model, name)(x), getattr(alone, name)(x), atol=2e-2)
        assert model.history_.keys() == alone.history_.keys()
        np.testing.assert_allclose(
            model.history_["train_loss"], alone.history_["train_loss"], rtol=2e-2, atol=1e-3
        )
        assert model.path_["steps"] == alone.path_["steps"]
        assert model.path_["reg_strength"] == alone.path_["reg_strength"]
        np.testing.assert_allclose(
            model.path_["valid_loss"], alone.path_["valid_loss"], rtol=2e-2, atol=1e-3
        )
        assert model.held_out_score_ == pytest.approx(alone.held_out_score_, abs=2e-2)


@pytest.mark.filterwarnings("ignore:No rows could be held out")
def test_tiny_tables_share_populations_too(trained):
    rng = np.random.default_rng(0)
    tables = [(x, x[:, 0]) for x in (rng.normal(size=(n, 2)) for n in (12, 20))]
    models = [clone(FIXED).set_params(cv=None) for _ in tables]
    assert fit_together(models, tables) == [None] * 2
    assert trained == [10]  # five starts each
    for model, (x, y) in zip(models, tables, strict=True):
        alone = clone(FIXED).set_params(cv=None).fit(x, y)
        np.testing.assert_allclose(model.predict(x), alone.predict(x), atol=2e-2)


def test_larger_groups_are_fitted_as_alone_to_the_last_bit(trained):
    x = np.random.default_rng(0).normal(size=(60, 2))
    estimator = clone(FIXED).set_params(batch_size=32)
    models = [clone(estimator) for _ in range(2)]
    fit_together(models, [(x, x[:, 0]), (x, x[:, 1])])
    assert trained == [2, 2]
    assert (models[1].predict(x) == clone(estimator).fit(x, x[:, 1]).predict(x)).all()


def test_large_populations_are_parted(trained, monkeypatch):
    x = np.random.default_rng(0).normal(size=(40, 2))
    monkeypatch.setattr(joint_fit, "LARGEST", 400)  # parameters; a table has about 170
    models = [clone(FIXED) for _ in range(3)]
    assert fit_together(models, [(x, x[:, 0])] * 3) == [None] * 3
    assert sorted(trained) == [2, 4]


def test_group_that_diverges_takes_nobody_with_it():
    x = np.random.default_rng(0).normal(size=(40, 2))
    spoiled = x[:, 0].copy()
    spoiled[[3, 5, 8, 13, 21]] = 1e30  # in every training
    models = [clone(FIXED).set_params(max_steps=100) for _ in range(3)]
    errors = fit_together(models, [(x, x[:, 0]), (x, spoiled), (x, x[:, 1])])
    assert [type(error).__name__ for error in errors] == ["NoneType", "DivergedError", "NoneType"]
    assert models[2].score(x, x[:, 1]) > 0.5


def test_mistake_in_one_table_is_its_own():
    x = np.random.default_rng(0).normal(size=(40, 2))
    models = [clone(FIXED) for _ in range(2)]
    errors = fit_together(models, [(x, np.full(40, np.nan)), (x, x[:, 1])])
    assert isinstance(errors[0], ValueError)
    assert errors[1] is None
    assert not hasattr(models[0], "net_")
