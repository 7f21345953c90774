"""Estimators with scikit-learn's contract."""

from psilonnet.estimators.classifier import PSiLONClassifier
from psilonnet.estimators.fitting import LostNetworksWarning
from psilonnet.estimators.loading import load_model
from psilonnet.estimators.regressor import PSiLONRegressor
from psilonnet.estimators.splits import HeldOutWarning

__all__ = [
    "HeldOutWarning",
    "LostNetworksWarning",
    "PSiLONClassifier",
    "PSiLONRegressor",
    "load_model",
]
