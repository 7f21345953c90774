import numpy as np

from psilonnet.plot import (
    FeatureSensitivityDisplay,
)


def test_features_are_sorted_shortened_and_counted(model):
    display = FeatureSensitivityDisplay.from_estimator(model)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    largest = model.feature_names_in_[model.feature_sensitivity_.argmax()]
    assert names[0].rstrip("…") == largest[:31]
    assert len(names) == 20
    assert max(map(len, names)) <= 32
    assert "20 largest of 30" in display.ax_.get_title()
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert widths == sorted(widths, reverse=True)


def test_dollars_in_names_are_no_formulas():
    display = FeatureSensitivityDisplay(names=["$a^{", "price in $ per $"], sensitivity=np.ones(2))
    display.plot().figure_.canvas.draw()
    assert display.ax_.get_yticklabels()[0].get_text() == "$a^{"
