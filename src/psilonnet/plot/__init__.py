"""Pictures of fitted estimators, in scikit-learn's Display convention (extra: plot)."""

from psilonnet.plot.features import FeatureSensitivityDisplay
from psilonnet.plot.history import TrainingCurvesDisplay
from psilonnet.plot.path import RegularizationPathDisplay
from psilonnet.plot.radius import CertifiedRadiusDisplay

__all__ = [
    "CertifiedRadiusDisplay",
    "FeatureSensitivityDisplay",
    "RegularizationPathDisplay",
    "TrainingCurvesDisplay",
]
