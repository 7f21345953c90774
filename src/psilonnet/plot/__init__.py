"""Pictures of fitted estimators, in scikit-learn's Display convention (extra: plot)."""

from psilonnet.plot.features import FeatureSensitivityDisplay, shortened
from psilonnet.plot.history import TrainingCurvesDisplay
from psilonnet.plot.path import RegularizationPathDisplay
from psilonnet.plot.radius import CertifiedRadiusDisplay
from psilonnet.plot.robustness import RobustnessDisplay
from psilonnet.plot.style import BLUE, GREY, quieten
from psilonnet.plot.trade_off import TradeOffDisplay

__all__ = [
    "BLUE",
    "GREY",
    "CertifiedRadiusDisplay",
    "FeatureSensitivityDisplay",
    "RegularizationPathDisplay",
    "RobustnessDisplay",
    "TradeOffDisplay",
    "TrainingCurvesDisplay",
    "quieten",
    "shortened",
]
