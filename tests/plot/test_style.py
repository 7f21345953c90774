import matplotlib.pyplot as plt
import pytest

from psilonnet.plot import (
    FeatureSensitivityDisplay,
    RegularizationPathDisplay,
    TradeOffDisplay,
    TrainingCurvesDisplay,
)


def test_own_axes_are_used(model):
    figure, axes = plt.subplots(3)
    assert RegularizationPathDisplay.from_estimator(model, axes=axes).figure_ is figure
    with pytest.raises(ValueError, match=r"needs 2 axes\. Got 3"):
        TrainingCurvesDisplay.from_estimator(model, axes=axes)
    _, own = plt.subplots()
    assert FeatureSensitivityDisplay.from_estimator(model, ax=own).ax_ is own
    assert TradeOffDisplay.from_estimator(model, ax=own).ax_ is own
