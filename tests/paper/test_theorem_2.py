"""Theorem 2: for residual CReLU nets the improved bound, and ours, are between L and P_1."""

import numpy as np
import pytest
import torch

from oracles import (
    Net,
    aligned,
    all_patterns_lipschitz,
    exact_lipschitz_1d,
    forward,
    random_net,
    search_slope,
)
from psilonnet.functional import Bound, path_norm, product_bound

SLACK = 1 + 1e-9  # rounding of a difference quotient in float64

# widths of the layers, pieces on each input: 64 random nets of each, all with residual blocks
SHAPES = [
    ((3, 2), 1),
    ((2, 3, 1), 4),
    ((2, 2, 2, 1), 1),
    ((3, 4, 4, 2), 1),
    ((4, 5, 5, 3), 8),
    ((2, 3, 3, 3, 1), 2),
    ((3, 5, 5, 5, 2), 1),
    ((3, *[4] * 4, 3), 3),
    ((2, *[3] * 5, 1), 1),
    ((5, *[6] * 6, 2), 5),
    ((3, *[4] * 7, 1), 1),
    ((2, *[4] * 9, 3), 6),
    ((3, *[5] * 10, 2), 1),
    ((2, *[4] * 11, 1), 7),
]
RELU_SHAPES = [((2, 2, 2, 1), 1), ((3, 4, 4, 4, 2), 4), ((2, *[4] * 8, 1), 1)]


def bound_of(net: Net, bound: Bound) -> np.ndarray:
    weights = [torch.from_numpy(w) for w in net.weights]
    return path_norm(weights, residual=net.residual, bound=bound).numpy()


def product_of(net: Net, bound: Bound) -> np.ndarray:
    weights = [torch.from_numpy(w) for w in net.weights]
    return product_bound(weights, residual=net.residual, bound=bound).numpy()


def residual_nets(widths, knots, *, activation="crelu", members=(50,), seed=0, scale=1.0):
    rng = np.random.default_rng([seed, len(widths), knots])
    net = random_net(
        rng, widths, activation=activation, residual=True, knots=knots, members=members
    )
    net.weights = [w * scale for w in net.weights]
    return net, rng


@pytest.mark.parametrize("scale", [0.5, 1.0])
@pytest.mark.parametrize(("widths", "knots"), SHAPES)
def test_residual_bounds_are_ordered_and_above_every_slope_found(widths, knots, scale):
    net, rng = residual_nets(widths, knots, members=(32,), scale=scale)
    slope, quotient = search_slope(net, rng)
    merged, improved, original = (bound_of(net, b) for b in ("merged", "improved", "original"))
    assert (slope <= merged * SLACK).all()
    assert (quotient <= merged * (1 + 1e-7) + 1e-9).all()
    assert (merged <= improved * SLACK).all()
    assert (improved <= original * SLACK).all()
    assert (original <= product_of(net, "original") * SLACK).all()
    assert (improved <= product_of(net, "improved") * SLACK).all()
    assert (merged <= product_of(net, "merged") * SLACK).all()


@pytest.mark.parametrize(("widths", "knots"), SHAPES)
def test_merged_bound_is_nearly_reached_by_aligned_nets_at_any_depth(widths, knots):
    net, rng = residual_nets(widths, knots, members=(25,), seed=2)
    net = aligned(net)
    slope, quotient = search_slope(net, rng)
    merged = bound_of(net, "merged")
    assert (slope <= merged * SLACK).all()
    assert (quotient <= merged * (1 + 1e-7) + 1e-9).all()
    assert (quotient / np.maximum(merged, 1e-12)).max() > (0.5 if knots > 1 else 0.99)


@pytest.mark.parametrize(("widths", "knots"), RELU_SHAPES)
def test_improved_bound_of_residual_relu_nets_is_above_every_slope_found(widths, knots):
    net, rng = residual_nets(widths, knots, activation="relu", members=(35,))
    slope, quotient = search_slope(net, rng)
    improved = bound_of(net, "improved")
    assert (slope <= improved * SLACK).all()
    assert (quotient <= improved * (1 + 1e-7) + 1e-9).all()


def test_merged_bound_needs_pieces_that_sum_to_the_coordinate():
    """``z - relu(z) + 1`` has slope 1 below 0, but ``|I + W| = 0``: merged is no bound for ReLU."""
    one, zero = np.ones((1, 1, 1)), np.zeros(1)
    net = Net([one, -one, one], [zero, zero + 1, zero], "relu", residual=[False, True, False])
    assert exact_lipschitz_1d(net) == 1
    assert bound_of(net, "merged") == 0
    assert bound_of(net, "improved") == 2
    both = np.ones((1, 2, 1))
    block = np.array([[[-1.0], [0.0]]])
    crelu = Net([one, block, both], [zero] * 3, "crelu", residual=[False, True, False])
    x = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_array_equal(forward(crelu, x)[0], np.minimum(x, 0))
    assert bound_of(crelu, "merged") == exact_lipschitz_1d(crelu) == 1


def test_slope_search_comes_close_to_the_merged_bound():
    net, rng = residual_nets((2, 2, 2, 1), 1, members=(100,), seed=1)
    ratio = search_slope(net, rng)[1] / np.maximum(bound_of(net, "merged"), 1e-12)
    assert ratio.max() > 0.95
    assert (ratio > 0.5).mean() > 0.3


@pytest.mark.parametrize(("widths", "knots"), [((1, 2, 2, 1), 1), ((1, 2, 2, 2), 3)])
def test_exact_lipschitz_constant_is_between_search_and_merged_bound(widths, knots):
    net, rng = residual_nets(widths, knots, members=())
    for _ in range(25):
        net = random_net(rng, widths, activation="crelu", residual=True, knots=knots)
        exact = exact_lipschitz_1d(net)
        every = all_patterns_lipschitz(net)
        found, quotient = search_slope(net, rng, starts=50)
        assert max(found, quotient * (1 - 1e-7)) <= exact * SLACK
        assert exact <= every * SLACK
        assert every <= bound_of(net, "merged") * SLACK


def test_merged_bound_is_well_below_the_improved_one_on_two_block_nets():
    rng = np.random.default_rng(0)
    shape = (300, 6, 2, 6)
    first, last = rng.normal(size=(300, 6, 1, 4)), rng.normal(size=(300, 2, 2, 6))
    blocks = [rng.normal(size=shape) / np.sqrt(6) for _ in range(2)]
    inner = [False, True, True, False]
    net = Net([first, *blocks, last], [np.zeros((300, 1))] * 4, "crelu", residual=inner)
    ratio = bound_of(net, "merged") / bound_of(net, "improved")
    assert (ratio <= SLACK).all()
    assert 0.5 < ratio.mean() < 0.95
