import numpy as np

from plot.settings import SMALL
from psilonnet import PSiLONRegressor
from psilonnet.plot import (
    TrainingCurvesDisplay,
)


def test_curves_have_both_losses(model):
    display = TrainingCurvesDisplay.from_estimator(model)
    words = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert words == ["training rows", "held-out rows"]
    x = np.random.default_rng(0).normal(size=(10, 2))
    alone = PSiLONRegressor(**{**SMALL, "cv": None}).fit(x, x[:, 0])
    assert len(TrainingCurvesDisplay.from_estimator(alone).axes_[0].lines) == 1
