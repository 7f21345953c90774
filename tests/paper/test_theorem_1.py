"""Theorem 1: the Lipschitz constant (L-infinity to L1) <= P_1 <= the product bound."""

import numpy as np
import pytest
import torch

from oracles import (
    Net,
    aligned,
    all_patterns_lipschitz,
    exact_lipschitz_1d,
    random_net,
    search_slope,
)
from psilonnet.functional import Bound, path_norm, product_bound

SLACK = 1 + 1e-9  # rounding of a difference quotient in float64

# widths of the layers, pieces on each input, hidden activation: 50 random nets of each
SHAPES = [
    ((3, 2), 1, "relu"),
    ((2, 1), 8, "relu"),
    ((2, 3, 1), 1, "relu"),
    ((4, 6, 3), 1, "relu"),
    ((3, 5, 2), 4, "relu"),
    ((2, 4, 4, 1), 2, "relu"),
    ((5, 8, 6, 3), 1, "relu"),
    ((3, 4, 4, 4, 2), 8, "relu"),
    ((3, 5, 4, 5, 4, 2), 3, "relu"),
    ((2, *[4] * 6, 1), 1, "relu"),
    ((4, *[5] * 8, 3), 5, "relu"),
    ((3, *[6] * 11, 2), 1, "relu"),
    ((3, 2), 2, "crelu"),
    ((2, 3, 1), 1, "crelu"),
    ((3, 4, 2), 7, "crelu"),
    ((4, 5, 3, 2), 1, "crelu"),
    ((2, 4, 3, 4, 1), 6, "crelu"),
    ((3, *[4] * 6, 3), 2, "crelu"),
    ((2, *[3] * 9, 2), 1, "crelu"),
    ((3, *[4] * 11, 1), 8, "crelu"),
]


def bounds(net: Net, bound: Bound) -> tuple[np.ndarray, np.ndarray]:
    weights = [torch.from_numpy(w) for w in net.weights]
    norm = path_norm(weights, residual=net.residual, bound=bound)
    total = product_bound(weights, residual=net.residual, bound=bound)
    return norm.numpy(), total.numpy()


@pytest.mark.parametrize(("widths", "knots", "activation"), SHAPES)
@pytest.mark.parametrize("bound", ["original", "improved"])
def test_path_norm_is_above_every_slope_found(widths, knots, activation, bound):
    rng = np.random.default_rng([len(widths), knots, widths[0], len(bound)])
    net = random_net(rng, widths, activation=activation, knots=knots, members=(25,))
    slope, quotient = search_slope(net, rng)
    norm, total = bounds(net, bound)
    assert (slope <= norm * SLACK).all()
    assert (quotient <= norm * (1 + 1e-7) + 1e-9).all()
    assert (norm <= total * SLACK).all()


@pytest.mark.parametrize(("widths", "knots", "activation"), SHAPES)
def test_path_norm_is_nearly_reached_by_aligned_nets_at_any_depth(widths, knots, activation):
    rng = np.random.default_rng([len(widths), knots, widths[0]])
    net = aligned(random_net(rng, widths, activation=activation, knots=knots, members=(25,)))
    slope, quotient = search_slope(net, rng)
    norm, _ = bounds(net, "improved")
    assert (slope <= norm * SLACK).all()
    assert (quotient <= norm * (1 + 1e-7) + 1e-9).all()
    assert (quotient / np.maximum(norm, 1e-12)).max() > (0.5 if knots > 1 else 0.99)


@pytest.mark.parametrize("activation", ["relu", "crelu"])
def test_slope_search_comes_close_to_the_path_norm(activation):
    rng = np.random.default_rng(0)
    net = random_net(rng, (2, 3, 1), activation=activation, members=(100,))
    ratio = search_slope(net, rng)[1] / np.maximum(bounds(net, "improved")[0], 1e-12)
    assert ratio.max() > 0.95
    assert (ratio > 0.5).mean() > 0.3


@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("knots", [1, 3])
@pytest.mark.parametrize("widths", [(1, 3, 2), (1, 2, 2, 1)])
def test_exact_lipschitz_constant_is_between_search_and_path_norm(widths, knots, activation):
    rng = np.random.default_rng([knots, len(widths)])
    for _ in range(15):
        net = random_net(rng, widths, activation=activation, knots=knots)
        exact = exact_lipschitz_1d(net)
        every = all_patterns_lipschitz(net)
        found, quotient = search_slope(net, rng, starts=50)
        assert max(found, quotient * (1 - 1e-7)) <= exact * SLACK
        assert exact <= every * SLACK
        assert every <= bounds(net, "improved")[0] * SLACK


def test_exact_lipschitz_constant_equals_the_path_norm_of_a_positive_net():
    """With positive weights and one output all paths add up: Theorem 1 is an equality."""
    rng = np.random.default_rng(0)
    net = random_net(rng, (1, 3, 3, 1))
    net.weights = [np.abs(w) for w in net.weights]
    np.testing.assert_allclose(exact_lipschitz_1d(net), bounds(net, "original")[0], rtol=1e-12)
