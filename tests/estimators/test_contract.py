"""scikit-learn's own checks, all of them, on small instances."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilonnet.estimators import PSiLONClassifier, PSiLONRegressor

SMALL = {"width": 24, "depth": 1, "max_steps": 80, "batch_size": 64, "learning_rate": 2e-2}
INSTANCES = [
    PSiLONClassifier(**SMALL),
    PSiLONRegressor(**SMALL),
    PSiLONClassifier(**SMALL, reg_strength=1e-3, scaling="robust", n_members=2, knots=3),
    PSiLONRegressor(
        **SMALL, reg_strength=1e-3, scaling="robust", prune=True, architecture="resnet"
    ),
]


@parametrize_with_checks(INSTANCES)
@pytest.mark.filterwarnings("default")  # some checks warn on purpose
def test_scikit_learn_contract(estimator, check):
    check(estimator)
