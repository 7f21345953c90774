import numpy as np
import pytest

from plot.settings import SMALL
from psilonnet import Design, PSiLONRegressor
from psilonnet.plot import RegularizationPathDisplay
from sizes import size


def test_path_shows_designs_what_is_used_and_what_was_taken_early(model):
    display = RegularizationPathDisplay.from_estimator(model)
    first, last = display.axes_[0], display.axes_[-1]
    assert first.get_ylabel() == "held-out loss"
    assert last.get_xlabel() == "reg_strength   (ringed: in use; hollow: taken early)"
    words = [text.get_text() for text in first.get_legend().get_texts()]
    assert words == ["L1", "L2, 4 pieces"]
    (full, hollow, more, other, rings) = (len(c.get_offsets()) for c in first.collections)
    assert full + hollow + more + other == len(model.path_["design"])
    assert (hollow, other) == (2, 2)  # before the strength rises
    assert rings == len(model.members_["weight"])
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    "strength", size([0.0, 1e-4, 1.0], long=[0.0, 1e-4, 1e-3, 0.01, 0.5, 1.0, 10.0, 100.0])
)
@pytest.mark.parametrize("bound", [0.0, 1.7])
@pytest.mark.parametrize("count", [1, 2])
def test_path_of_one_strength_is_drawn_in_the_middle(strength, bound, count):
    column = np.ones(count)
    path = {
        "design": np.arange(count), "reg_strength": strength * column, "steps": 9 * column,
        "valid_loss": 0.7 * column, "bound": bound * column, "near_sparsity": 0.3 * column,
        "weight": column / count,
    }  # fmt: skip
    designs = [Design(), Design(pieces=8)][:count]
    display = RegularizationPathDisplay(path=path, designs=designs).plot()
    display.figure_.canvas.draw()  # warnings are errors
    assert (display.axes_[0].get_legend() is None) == (count == 1)
    assert display.axes_[-1].get_xlabel() == "reg_strength   (ringed: in use)"
    for axis, name in zip(display.axes_, ("valid_loss", "bound", "near_sparsity"), strict=True):
        left, right = axis.get_xlim()
        assert (left, right) == pytest.approx(
            (strength / 10, 10 * strength) if strength else (-1, 1)
        )
        low, high = axis.get_ylim()
        assert low < path[name][0] < high


def test_path_needs_a_choice():
    x = np.random.default_rng(0).normal(size=(10, 2))
    model = PSiLONRegressor(**{**SMALL, "cv": None}).fit(x, x[:, 0])
    with pytest.raises(ValueError, match=r"held nothing out: fit it to at least 40 rows"):
        RegularizationPathDisplay.from_estimator(model)
