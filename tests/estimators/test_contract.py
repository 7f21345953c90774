"""scikit-learn's own checks, all of them: on small instances, or on the defaults (.ci/defaults)."""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilonnet.estimators import PSiLONClassifier, PSiLONRegressor

SMALL = {"width": 24, "depth": 1, "max_steps": 40, "batch_size": 64, "learning_rate": 4e-2}
FEW = {**SMALL, "reg_strength": (1e-4, 1e-3, 1e-2)}
OTHER = {**SMALL, "reg_strength": 1e-3, "scaling": "robust"}
INSTANCES = [
    PSiLONClassifier(**FEW),
    PSiLONRegressor(**FEW),
    PSiLONClassifier(**OTHER, n_members=2, knots=3),
    PSiLONRegressor(**OTHER, prune=True, architecture="resnet", knots=0),
]
if "PSILONNET_DEFAULTS" in os.environ:
    INSTANCES = [PSiLONClassifier(), PSiLONRegressor()]


@parametrize_with_checks(INSTANCES)
@pytest.mark.filterwarnings("default")  # some checks warn on purpose
def test_scikit_learn_contract(estimator, check):
    check(estimator)
