"""The attack: what it finds lies in the box, and on small nets it finds the very extremes."""

import itertools

import numpy as np
import pytest
import torch

from certify.random_averages import KINDS, random_average
from psilonnet.certify import Box, Effort, attack
from psilonnet.certify.box import Jump
from sizes import size


def averages(number, columns=None, bent=None):
    generator = torch.Generator().manual_seed(number)
    kinds = (KINDS[number % len(KINDS)], KINDS[-1 - number % len(KINDS)])
    net = random_average(generator, kinds, columns, bent)
    return net, generator


def both_ways(net, rows):
    eye = torch.eye(net.outputs, dtype=torch.float64)
    return torch.cat([eye, -eye]).expand(rows, -1, -1)


@pytest.mark.parametrize("number", range(size(3, long=40)))
def test_what_is_found_lies_in_the_box_and_moves_as_far_as_it_says(number):
    net, generator = averages(number)
    x = 2 * torch.randn(5, net.columns, generator=generator, dtype=torch.float64)
    radius = torch.rand(5, net.columns, generator=generator, dtype=torch.float64)
    radius[:, 0] = 0.0
    asked = both_ways(net, 5)
    points, moves = attack(net, x, Box.of(radius), asked)
    assert ((points - x.unsqueeze(1)).abs() <= radius.unsqueeze(1) * (1 + 1e-12)).all()
    assert (points[..., 0] == x[:, :1]).all()
    reached = net(points.flatten(0, 1)).reshape(5, len(asked[0]), -1)
    moved = torch.einsum("rco,rco->rc", asked, reached - net(x).unsqueeze(1))
    torch.testing.assert_close(moves, moved, rtol=1e-9, atol=1e-9)
    assert (moves >= 0).all()


@pytest.mark.parametrize("number", range(size(3, long=40)))
def test_it_finds_about_what_a_dense_grid_finds(number):
    net, generator = averages(50 + number, columns=2)
    x = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    radius = torch.full_like(x, 0.5)
    asked = both_ways(net, 4)
    moves = attack(net, x, Box.of(radius), asked, effort=Effort(climbs=6, stops=31)).moves
    steps = torch.linspace(-0.5, 0.5, 41, dtype=torch.float64)
    grid = torch.cartesian_prod(steps, steps)
    reached = net((x.unsqueeze(1) + grid).flatten(0, 1)).reshape(4, len(grid), -1)
    best = torch.einsum("rco,rgo->rgc", asked, reached - net(x).unsqueeze(1)).amax(dim=1)
    assert moves.sum() >= 0.98 * best.sum()  # a search: it can end on a lower hill


@pytest.mark.parametrize("number", range(size(2, long=20)))
def test_it_finds_the_best_of_all_levels_and_corners(number):
    bent = torch.tensor([True, False, False, False, True, False])
    net, generator = averages(100 + number, 6, bent)
    trio = np.concatenate([np.eye(3), np.zeros((1, 3))])
    jumps = [Jump(np.array([1, 2, 3]), trio), Jump(np.array([5]), np.array([[-1.0], [1.0]]))]
    x = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    x[:, 1:4], x[:, 5] = torch.from_numpy(trio[:3]), 1.0
    radius = torch.tensor([0.3, 0, 0, 0, 0.2, 0], dtype=torch.float64).expand(3, 6)
    asked = both_ways(net, 3)
    points, moves = attack(net, x, Box.of(radius, jumps), asked, effort=Effort(climbs=4))
    for place, states in ((slice(1, 4), trio), (slice(5, 6), np.array([[-1.0], [1.0]]))):
        there = points[..., place].unsqueeze(2) == torch.from_numpy(states)
        assert there.all(dim=-1).any(dim=-1).all()
    best = torch.zeros_like(moves)
    sides = itertools.product(trio, (-1.0, 1.0), (-0.3, 0.3), (-0.2, 0.2))
    for level, sign, first, second in sides:
        there = x.clone()
        there[:, 1:4], there[:, 5] = torch.from_numpy(level), sign
        there[:, 0] += first
        there[:, 4] += second
        reached = torch.einsum("rco,ro->rc", asked, net(there) - net(x))
        best = torch.maximum(best, reached)
    assert moves.sum() >= 0.98 * best.sum()


def test_a_search_that_has_enough_ends():
    net, generator = averages(3)
    x = torch.randn(6, net.columns, generator=generator, dtype=torch.float64)
    box, asked = Box.of(torch.full_like(x, 0.5)), both_ways(net, 6)
    far = attack(net, x, box, asked).moves
    enough = far * 0.5
    assert (attack(net, x, box, asked, enough=enough).moves >= enough).all()


def test_the_same_seed_finds_the_same():
    net, generator = averages(4)
    x = torch.randn(6, net.columns, generator=generator, dtype=torch.float64)
    box, asked = Box.of(torch.full_like(x, 0.5)), both_ways(net, 6)
    assert torch.equal(attack(net, x, box, asked).points, attack(net, x, box, asked).points)


def test_no_rows_are_attacked_at_once():
    net, _ = averages(5)
    x = torch.zeros(0, net.columns, dtype=torch.float64)
    points, moves = attack(net, x, Box.of(x), both_ways(net, 0))
    assert points.shape == (0, 2 * net.outputs, net.columns)
    assert moves.shape == (0, 2 * net.outputs)
