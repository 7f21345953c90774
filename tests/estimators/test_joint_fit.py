"""Models fitted side by side are those fitted alone."""

import numpy as np
import pytest
from sklearn.base import clone

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators.together import fit_together

QUICK = {"width": 16, "depth": 1, "max_steps": 40, "learning_rate": 2e-2, "random_state": 0}
ONE = {**QUICK, "knots": 0, "selection": "best", "scaling": "standard"}  # no near ties
FIXED = PSiLONRegressor(**QUICK, reg_strength=1e-3, knots=0)


@pytest.mark.parametrize(
    "estimator",
    [
        FIXED,
        PSiLONRegressor(**QUICK, knots=3, prune=True, n_members=2, reg_strength=1e-3),
        PSiLONClassifier(**QUICK, architecture="resnet", reg_strength=1e-3),
        PSiLONClassifier(**ONE, reg_strength=np.geomspace(1e-4, 1, 9)),
        PSiLONRegressor(**ONE, validation=3),
        PSiLONRegressor(**QUICK, reg_strength=(1e-3, 1e-1)),
    ],
    ids=[
        "fixed",
        "knots, pruned members",
        "resnet classifier",
        "narrowed grid",
        "folds",
        "average",
    ],
)
def test_models_fitted_together_are_those_fitted_alone(estimator, monkeypatch):
    monkeypatch.setattr("psilonnet.estimators.choosing.SHORT", 20)  # narrow the grid of strengths
    rng = np.random.default_rng(0)
    tables = []
    for n in (40, 60, 41):
        x = rng.normal(size=(n, 3))
        y = x[:, 0] + np.abs(x[:, 1])
        tables.append((x, y > 0.5 if isinstance(estimator, PSiLONClassifier) else y))
    together = [clone(estimator) for _ in tables]
    assert fit_together(together, tables) == [None] * 3
    for model, (x, y) in zip(together, tables, strict=True):
        alone = clone(estimator).fit(x, y)
        assert model.reg_strength_ == alone.reg_strength_
        assert model.lipschitz_bound_ == pytest.approx(alone.lipschitz_bound_, rel=1e-2)
        name = "predict_proba" if isinstance(estimator, PSiLONClassifier) else "predict"
        np.testing.assert_allclose(getattr(model, name)(x), getattr(alone, name)(x), atol=2e-2)
        assert model.history_.keys() == alone.history_.keys()
        np.testing.assert_allclose(
            model.history_["train_loss"], alone.history_["train_loss"], rtol=2e-2, atol=1e-3
        )
        if alone.path_ is not None:
            assert model.path_["steps"] == alone.path_["steps"]
            assert model.held_out_score_ == pytest.approx(alone.held_out_score_, abs=2e-2)


def test_larger_groups_are_fitted_as_alone_to_the_last_bit():
    x = np.random.default_rng(0).normal(size=(60, 2))
    estimator = clone(FIXED).set_params(batch_size=32)
    models = [clone(estimator) for _ in range(2)]
    fit_together(models, [(x, x[:, 0]), (x, x[:, 1])])
    assert (models[1].predict(x) == clone(estimator).fit(x, x[:, 1]).predict(x)).all()


def test_group_that_diverges_takes_nobody_with_it():
    x = np.random.default_rng(0).normal(size=(30, 2))
    spoiled = np.where(np.arange(30) == 3, 1e30, x[:, 0])
    models = [clone(FIXED) for _ in range(3)]
    errors = fit_together(models, [(x, x[:, 0]), (x, spoiled), (x, x[:, 1])])
    assert [type(error).__name__ for error in errors] == ["NoneType", "DivergedError", "NoneType"]
    assert models[2].score(x, x[:, 1]) > 0.5
