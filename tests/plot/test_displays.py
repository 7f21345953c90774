import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.plot import (
    CertifiedRadiusDisplay,
    FeatureSensitivityDisplay,
    RegularizationPathDisplay,
    TrainingCurvesDisplay,
)

mpl.use("Agg")
SMALL = {"width": 8, "depth": 1, "max_steps": 40, "random_state": 0, "knots": 0}


@pytest.fixture(scope="module")
def model():
    x = np.random.default_rng(0).normal(size=(60, 30))
    names = [f"column number {k} with a name longer than anybody wants" for k in range(30)]
    return PSiLONRegressor(**SMALL).fit(pd.DataFrame(x, columns=names), x[:, 0])


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_path_marks_the_choice_and_what_was_dropped(model):
    display = RegularizationPathDisplay.from_estimator(model)
    assert display.axes_[0].get_ylabel() == "held-out loss"
    assert f"{model.reg_strength_:g}" in display.axes_[0].get_title()
    assert "dropped" not in display.axes_[0].get_title()
    path = {**model.path_, "steps": [40.0] * 6 + [10.0] * 7}
    members = {"reg_strength": [1e-3, 5e-3], "knots": [0.0, 8.0], "weight": [0.7, 0.3]}
    display = RegularizationPathDisplay(path=path, members=members).plot()
    assert display.axes_[0].get_title() == "chosen: 0.001, 0.005   (hollow: dropped early)"
    drawn = sum(len(c.get_offsets()) for c in display.axes_[0].collections)
    assert drawn == 13
    assert display.axes_[-1].get_legend() is None
    both = {name: [*column, *column] for name, column in path.items()}
    both["knots"] = [0.0] * 13 + [8.0] * 13
    display = RegularizationPathDisplay(path=both, members=members).plot()
    words = [text.get_text() for text in display.axes_[-1].get_legend().get_texts()]
    assert words == ["plain columns", "8 pieces per column"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize("strength", [0.0, 1e-4, 1e-3, 0.01, 0.5, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("bound", [0.0, 1.7])
@pytest.mark.parametrize("knots", [[0.0], [0.0, 8.0]])
def test_path_of_one_strength_is_drawn_in_the_middle(strength, bound, knots):
    column = np.ones(len(knots))
    path = {
        "knots": knots, "reg_strength": strength * column, "valid_loss": 0.7 * column,
        "bound": bound * column, "near_sparsity": 0.3 * column, "steps": 9 * column,
    }  # fmt: skip
    members = {"reg_strength": [strength], "knots": [0.0], "weight": [1.0]}
    display = RegularizationPathDisplay(path=path, members=members).plot()
    display.figure_.canvas.draw()  # warnings are errors
    for axis, name in zip(display.axes_, ("valid_loss", "bound", "near_sparsity"), strict=True):
        left, right = axis.get_xlim()
        assert (left, right) == pytest.approx(
            (strength / 10, 10 * strength) if strength else (-1, 1)
        )
        low, high = axis.get_ylim()
        assert low < path[name][0] < high


def test_path_needs_a_choice():
    x = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"compared none: fit it with reg_strength='auto'"):
        RegularizationPathDisplay.from_estimator(PSiLONRegressor(**SMALL).fit(x, x[:, 0]))


def test_curves_have_both_losses(model):
    display = TrainingCurvesDisplay.from_estimator(model)
    words = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert words == ["training rows", "held-out rows"]
    x = np.random.default_rng(0).normal(size=(10, 2))
    alone = PSiLONRegressor(**SMALL).fit(x, x[:, 0])
    assert len(TrainingCurvesDisplay.from_estimator(alone).axes_[0].lines) == 1


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


def test_own_axes_are_used(model):
    figure, axes = plt.subplots(3)
    assert RegularizationPathDisplay.from_estimator(model, axes=axes).figure_ is figure
    with pytest.raises(ValueError, match=r"needs 2 axes\. Got 3"):
        TrainingCurvesDisplay.from_estimator(model, axes=axes)
    _, own = plt.subplots()
    assert FeatureSensitivityDisplay.from_estimator(model, ax=own).ax_ is own


def test_radius_curve_is_the_share_of_certified_rows():
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = x[:, 0] > 0
    classifier = PSiLONClassifier(**SMALL).fit(x, y)
    display = CertifiedRadiusDisplay.from_estimator(classifier, x, y)
    moves, shares = display.ax_.lines[0].get_data()
    right = classifier.predict(x) == y
    assert shares[0] == pytest.approx(right.mean())
    radius = classifier.certified_radius(x)
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
