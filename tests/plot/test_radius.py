import numpy as np
import pytest

from plot.settings import SMALL
from psilonnet import PSiLONClassifier
from psilonnet.plot import CertifiedRadiusDisplay


def test_radius_curve_is_the_share_of_certified_rows():
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = x[:, 0] > 0
    classifier = PSiLONClassifier(**SMALL).fit(x, y)
    display = CertifiedRadiusDisplay.from_estimator(classifier, x, y)
    moves, shares = display.ax_.lines[0].get_data()
    right = classifier.predict(x) == y
    assert shares[0] == pytest.approx(right.mean())
    radius = classifier.certified_radius(x, method="global")
    middle = np.median(radius)
    expected = (right & (radius >= middle)).mean()
    assert shares[np.searchsorted(moves, middle)] == pytest.approx(expected, abs=0.02)
    CertifiedRadiusDisplay.from_estimator(classifier, x, name="all rows", ax=display.ax_)
    assert len(display.ax_.lines) == 2
    display.figure_.canvas.draw()


def test_radius_needs_a_classifier(model):
    with pytest.raises(ValueError, match=r"need a classifier.*output_range"):
        CertifiedRadiusDisplay.from_estimator(model, None)


@pytest.mark.parametrize("labels", [["no", "yes"], [7, 8]])
def test_radius_refuses_labels_of_which_none_is_a_class(labels):
    x = np.random.default_rng(0).normal(size=(80, 3))
    classifier = PSiLONClassifier(**SMALL).fit(x, (x[:, 0] > 0).astype(int))
    y = np.array(labels)[(x[:, 0] > 0).astype(int)]
    with pytest.raises(ValueError, match=r"must be classes of the model: \[0, 1\].*type that fit"):
        CertifiedRadiusDisplay.from_estimator(classifier, x, y)
