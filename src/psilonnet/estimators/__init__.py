"""Estimators with scikit-learn's contract."""

from psilonnet.estimators.classifier import PSiLONClassifier
from psilonnet.estimators.loading import load_model
from psilonnet.estimators.regressor import PSiLONRegressor

__all__ = ["PSiLONClassifier", "PSiLONRegressor", "load_model"]
