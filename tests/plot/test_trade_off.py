import numpy as np
import pytest

import psilonnet
from plot.settings import SMALL
from psilonnet import Design, PSiLONRegressor
from psilonnet.plot import TradeOffDisplay


def _texts(display):
    return [text.get_text() for text in display.ax_.texts]


def test_every_snapshot_is_a_point_and_those_in_use_have_their_weight(model):
    display = TradeOffDisplay.from_estimator(model)
    ax = display.ax_
    assert ax.get_xscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["L1", "L2, 4 pieces"]
    first, second, rings, *_ = (c.get_offsets() for c in ax.collections)
    drawn = np.concatenate([first, second])
    expected = np.stack([model.path_["bound"], model.path_["valid_loss"]], axis=1)
    np.testing.assert_allclose(drawn, expected)
    used = np.flatnonzero(model.path_["weight"])
    np.testing.assert_allclose(rings, expected[used])
    weights = sorted(f"{w:.0%}" for w in model.members_["weight"])
    assert sorted(word for word in _texts(display) if "%" in word) == weights
    display.figure_.canvas.draw()


def test_selections_are_where_models_of_them_are(model):
    display = TradeOffDisplay.from_estimator(model)
    assert set(display.selections) == {"accurate", "balanced", "provable"}
    for selection, (loss, bound) in display.selections.items():
        other = model.with_selection(selection)
        weight = np.array(other.path_["weight"])
        assert bound == pytest.approx(weight @ other.path_["bound"])
        # Of squared errors: an average is at least as good as the mean of what is averaged.
        assert loss <= weight @ other.path_["valid_loss"] * (1 + 1e-12)
    losses = [display.selections[s][0] for s in ("accurate", "balanced", "provable")]
    bounds = [display.selections[s][1] for s in ("accurate", "balanced", "provable")]
    assert losses == sorted(losses)
    assert bounds == sorted(bounds, reverse=True)


def test_loaded_and_freed_models_have_a_picture_without_selections(model, tmp_path):
    model.save(tmp_path / "model.psilon")
    display = TradeOffDisplay.from_estimator(psilonnet.load(tmp_path / "model.psilon"))
    assert display.selections == {}
    assert all("%" in word for word in _texts(display))
    assert display.ax_.get_xlabel() == "bound\nringed: in use, with weights"
    display.figure_.canvas.draw()


def test_pruned_models_show_what_was_pruned(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = PSiLONRegressor(**SMALL, prune=True).fit(x, x[:, 0])
    display = TradeOffDisplay.from_estimator(model)
    assert display.selections == {}
    assert len(_texts(display)) == len(model.members_["weight"])


def test_selections_that_agree_share_a_point_and_words_of_close_points_do_not_overlap():
    path = {
        "design": [0.0, 0.0, 0.0], "reg_strength": [1.0, 2.0, 3.0], "valid_loss": [0.5, 0.5, 0.6],
        "bound": [10.0, 10.1, 3.0], "weight": [0.5, 0.3, 0.2],
    }  # fmt: skip
    selections = {"accurate": (0.4, 9.0), "balanced": (0.4, 9.0), "provable": (0.45, 4.0)}
    display = TradeOffDisplay(path=path, designs=[Design()], selections=selections).plot()
    assert "accurate, balanced" in _texts(display)
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    pairs = [(a, b) for k, a in enumerate(boxes) for b in boxes[:k]]
    assert not any(a.overlaps(b) for a, b in pairs)


@pytest.mark.parametrize("bounds", [[0.0, 2.0], [0.0, 0.0]])
def test_networks_that_never_move_have_a_place(bounds):
    path = {"design": [0, 0], "valid_loss": [0.5, 0.4], "bound": bounds, "weight": [0.0, 1.0]}
    display = TradeOffDisplay(path=path, designs=[Design()]).plot()
    display.figure_.canvas.draw()
    low, high = display.ax_.get_xlim()
    assert low < 0.0 < high


def test_trade_off_needs_held_out_rows():
    x = np.random.default_rng(0).normal(size=(10, 2))
    model = PSiLONRegressor(**{**SMALL, "cv": None}).fit(x, x[:, 0])
    with pytest.raises(ValueError, match="held nothing out"):
        TradeOffDisplay.from_estimator(model)
