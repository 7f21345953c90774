"""Estimators with scikit-learn's contract."""

from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.choosing import greedy_weights
from psilonnet.estimators.classifier import PSiLONClassifier
from psilonnet.estimators.fitting import Design, LostNetworksWarning, Problem, column_map
from psilonnet.estimators.loading import load_model
from psilonnet.estimators.parameters import check_parameters
from psilonnet.estimators.regressor import PSiLONRegressor
from psilonnet.estimators.saving import plain_data
from psilonnet.estimators.splits import HeldOutWarning, make_splits
from psilonnet.estimators.targets import TEMPERATURE_ERRORS, fit_temperature
from psilonnet.estimators.together import fit_together

__all__ = [
    "TEMPERATURE_ERRORS",
    "BasePSiLON",
    "Design",
    "HeldOutWarning",
    "LostNetworksWarning",
    "PSiLONClassifier",
    "PSiLONRegressor",
    "Problem",
    "check_parameters",
    "column_map",
    "fit_temperature",
    "fit_together",
    "greedy_weights",
    "load_model",
    "make_splits",
    "plain_data",
]
