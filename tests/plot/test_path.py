import numpy as np
import pytest

from plot.settings import SMALL
from psilonnet import PSiLONRegressor
from psilonnet.plot import RegularizationPathDisplay
from sizes import size


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


@pytest.mark.parametrize(
    "strength", size([0.0, 1e-4, 1.0], long=[0.0, 1e-4, 1e-3, 0.01, 0.5, 1.0, 10.0, 100.0])
)
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
