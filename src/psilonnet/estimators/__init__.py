"""Estimators with scikit-learn's contract."""

from psilonnet.estimators.base import BasePSiLON
from psilonnet.estimators.class_target import TEMPERATURE_ERRORS, fit_temperature
from psilonnet.estimators.classifier import PSiLONClassifier
from psilonnet.estimators.designs import DESIGNS, Design
from psilonnet.estimators.folds import HeldOutWarning, make_splits
from psilonnet.estimators.joint_fit import fit_together
from psilonnet.estimators.loading import load_model
from psilonnet.estimators.parameters import check_parameters
from psilonnet.estimators.paths import LostNetworksWarning
from psilonnet.estimators.regressor import PSiLONRegressor
from psilonnet.estimators.saving import parameters_to_data
from psilonnet.estimators.selection import SELECTIONS, greedy_weights

__all__ = [
    "DESIGNS",
    "SELECTIONS",
    "TEMPERATURE_ERRORS",
    "BasePSiLON",
    "Design",
    "HeldOutWarning",
    "LostNetworksWarning",
    "PSiLONClassifier",
    "PSiLONRegressor",
    "check_parameters",
    "fit_temperature",
    "fit_together",
    "greedy_weights",
    "load_model",
    "make_splits",
    "parameters_to_data",
]
