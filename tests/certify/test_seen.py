"""Boxes pass through a map by their ends: nothing in them is lost, and little is added."""

from fractions import Fraction

import pytest
import torch

from certify.random_averages import random_average
from nn.exact_maps import as_fraction, exact_map
from psilonnet.certify.seen import seen_box
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainNet


def part_of(columns):
    n = len(columns.bent)
    net = PlainNet(torch.nn.Sequential(torch.nn.Linear(n, 1)))
    return Part(net, torch.ones(1, dtype=torch.float64), columns, torch.arange(n))


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("bend", ["log_tails", "clipped"])
@pytest.mark.parametrize("seed", range(12))
def test_boxes_hold_the_exact_images_of_all_their_points(bend, seed):
    generator = torch.Generator().manual_seed(seed)
    spread, n = (0.5, 3.0, 20.0)[seed % 3], 12

    def draw():
        exponent = spread * torch.randn(n, generator=generator).double()
        return torch.randn(n, generator=generator).double() * 10.0 ** exponent.clamp(-60, 60)

    center, scale = draw(), draw().abs()
    columns = ColumnMap.of(bend, torch.ones(n, dtype=torch.bool), center, scale)
    x, radius = draw(), draw().abs()
    radius[0] = 0.0
    x[1], radius[1] = center[1], 2.0**-60 * scale[1]  # below the rounding of the map
    seen = seen_box(part_of(columns), x.unsqueeze(0), radius.unsqueeze(0))
    assert seen.radius[0, 0] == 0
    for k in range(n):
        here, size = Fraction(float(x[k])), Fraction(float(radius[k]))
        image = as_fraction(exact_map(bend, center[k], scale[k], here))
        reach, off = Fraction(float(seen.radius[0, k])), Fraction(float(seen.rounding[0, k]))
        assert abs(Fraction(float(seen.x[0, k])) - image) <= off
        slope = size / Fraction(float(scale[k]))
        assert reach <= slope * (1 + Fraction(1, 10**14)) + Fraction(1, 10**290)
        for share in (-1, Fraction(-1, 3), Fraction(1, 7), 1):
            there = as_fraction(exact_map(bend, center[k], scale[k], here + share * size))
            assert abs(there - image) <= reach
            assert abs(there) <= Fraction(float(seen.size[0, k]))


def test_moves_far_out_are_small():
    columns = ColumnMap.of("log_tails", torch.tensor([True, False]))
    seen = seen_box(part_of(columns), tensor([1e6, 1e6]), tensor([1e3, 1e3]))
    assert seen.radius[0, 1] == 1e3
    assert 0.002 < seen.radius[0, 0] < 0.004  # 3 log(1.001), and not 1000
    assert seen.rounding[0, 1] == 0


def test_what_overflows_excludes_nothing():
    for bend in ("log_tails", "clipped"):
        columns = ColumnMap.of(bend, torch.tensor([True]))
        seen = seen_box(part_of(columns), tensor([0.0]), tensor([torch.inf]))
        assert seen.radius == torch.inf
        assert seen.rounding == torch.inf


def test_columns_that_are_not_read_are_left_out():
    net = random_average(torch.Generator().manual_seed(0), ("P-Net", "P-Net"), 6)
    x = torch.arange(6.0, dtype=torch.float64).unsqueeze(0)
    for part in AveragedNet.of(net).parts:
        seen = seen_box(part, x, x)
        assert seen.x.shape == seen.radius.shape == (1, len(part.inputs))
        assert torch.equal(seen.x, part.see(x))
