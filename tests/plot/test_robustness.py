import numpy as np
import pytest

from plot.settings import SMALL
from psilonnet import PSiLONClassifier
from psilonnet.plot import RobustnessDisplay


def test_what_is_proven_is_never_refuted_and_both_shares_fall():
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = x[:, 0] + 0.3 * x[:, 1] > 0
    classifier = PSiLONClassifier(**SMALL).fit(x, y)
    display = RobustnessDisplay.from_estimator(classifier, x, y, sizes=(0.3, 0.05, 0.1))
    np.testing.assert_array_equal(display.sizes, [0.0, 0.05, 0.1, 0.3])
    right = classifier.predict(x) == y
    assert display.proven[0] == display.survived[0] == right.mean()
    assert (display.proven <= display.survived).all()
    assert (np.diff(display.survived) <= 0).all()
    assert display.survived[-1] < right.mean()
    stays = classifier.is_robust(x, 0.1)
    assert display.proven[2] == (right & stays).mean()
    display.figure_.canvas.draw()
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    np.testing.assert_array_equal(drawn["proven"], display.proven)
    np.testing.assert_array_equal(drawn["not refuted"], display.survived)


def test_only_classes_can_flip(model):
    with pytest.raises(ValueError, match=r"What can flip is a class.*output_range"):
        RobustnessDisplay.from_estimator(model, None)
