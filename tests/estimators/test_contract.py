"""scikit-learn's own checks, all of them: on two small instances, in the long run on others too."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from psilonnet.estimators import Design, PSiLONClassifier, PSiLONRegressor

TINY = {"width": 16, "depth": 1, "max_steps": 40, "batch_size": 64, "learning_rate": 4e-2}
SMALL = {**TINY, "cv": 2, "designs": [Design()]}
FEW = {**SMALL, "reg_strength": (1e-4, 1e-3, 1e-2)}
OTHER = {**SMALL, "reg_strength": 1e-3}
PIECES = {**OTHER, "designs": [Design(pieces=3, columns="clipped"), Design(directions="l2")]}
RESNET = {**OTHER, "designs": [Design(architecture="resnet")]}


@parametrize_with_checks([PSiLONClassifier(**FEW), PSiLONRegressor(**FEW)])
@pytest.mark.filterwarnings("default")  # some checks warn on purpose
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def not_for_counts(estimator):
    """Return the one check whose several targets are below 0, though the tags ask for none."""
    if getattr(estimator, "loss", None) != "poisson":
        return {}
    return {"check_regressor_multioutput": "its targets are below 0, and counts are not"}


@pytest.mark.long
@parametrize_with_checks(
    [
        PSiLONClassifier(**{**PIECES, "cv": 3}, selection="provable"),
        PSiLONRegressor(**RESNET, prune=True),
        PSiLONRegressor(**OTHER, loss="quantile", quantile=0.7),
        PSiLONRegressor(**OTHER, loss="poisson"),
        PSiLONClassifier(),
        PSiLONRegressor(),
    ],
    expected_failed_checks=not_for_counts,
)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_contract_of_other_settings(estimator, check):
    check(estimator)
