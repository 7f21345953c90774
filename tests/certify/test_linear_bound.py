"""Linear bounds against exact ranges: all patterns of tiny nets, and mixed-integer programs."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, linprog, milp

from certify.random_averages import random_average, random_net
from psilonnet.certify import Certifier
from psilonnet.certify.box import Box, Jump
from psilonnet.certify.column_sums import ColumnSums, InputBox, Sight, finer
from psilonnet.certify.combinations import both_ways
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.certify.methods import LOCAL
from psilonnet.nn import (
    AveragedNet,
    ColumnMap,
    MonotoneNet,
    Part,
    PlainLayer,
    PlainNet,
    PSiLONNet,
    fold,
)
from sizes import size


def affine_layers(net):
    """Return weights and biases of one ReLU network as arrays."""
    linear = [module for module in fold(net.member(0)) if hasattr(module, "weight")]
    return [(own.weight.detach().numpy(), own.bias.detach().numpy()) for own in linear]


def least_over_patterns(layers, low, high):
    """Return the least output: the least over all patterns of signs, a linear program each."""
    least = np.inf
    widths = [len(bias) for _, bias in layers[:-1]]
    for pattern in itertools.product((0.0, 1.0), repeat=sum(widths)):
        matrix, offset, bounds, done = np.eye(len(low)), np.zeros(len(low)), [], 0
        for weight, bias in layers[:-1]:
            matrix, offset = weight @ matrix, weight @ offset + bias
            on = np.array(pattern[done : done + len(bias)])
            done += len(bias)
            side = 1 - 2 * on  # on: -z <= 0
            bounds.append((side[:, None] * matrix, -side * offset))
            matrix, offset = on[:, None] * matrix, on * offset
        (row,), (constant,) = layers[-1][0] @ matrix, layers[-1][0] @ offset + layers[-1][1]
        above, right = (np.concatenate(own) for own in zip(*bounds, strict=True))
        ends = np.stack((low, high), axis=1)
        found = linprog(row, A_ub=above, b_ub=right, bounds=ends)
        if found.status == 0:
            least = min(least, found.fun + constant)
    return least


def least_by_milp(nets, weights, low, high):
    """Return the least value of a weighted sum of ReLU networks of the same inputs.

    It is what the networks give where the solver says: what the solver says of it is off by 1e-7.
    """
    below, cost = [], {}
    names = {("x", i): (lo, hi, 0) for i, (lo, hi) in enumerate(zip(low, high, strict=True))}
    for n, (layers, weight) in enumerate(zip(nets, weights, strict=True)):
        keys, bottom, top = [("x", i) for i in range(len(low))], low, high
        for k, (matrix, bias) in enumerate(layers):
            center, half = matrix @ (bottom + top) / 2 + bias, np.abs(matrix) @ (top - bottom) / 2
            if k == len(layers) - 1:
                for key, value in zip(keys, matrix[0], strict=True):
                    cost[key] = cost.get(key, 0.0) + weight * value
                break
            lo, hi = center - half - 1e-6, center + half + 1e-6
            new = [("h", n, k, j) for j in range(len(bias))]
            for j, key in enumerate(new):
                names[key] = (0.0, max(hi[j], 0.0), 0)
                names[("on", *key)] = (0.0, 1.0, 1)
                row = dict(zip(keys, matrix[j], strict=True))
                negative = {name: -value for name, value in row.items()}
                below += [
                    ({**row, key: -1.0}, -bias[j]),  # h >= z
                    ({**negative, key: 1.0, ("on", *key): -lo[j]}, bias[j] - lo[j]),
                    ({key: 1.0, ("on", *key): -max(hi[j], 0.0)}, 0.0),
                ]
            keys, bottom, top = new, np.maximum(lo, 0), np.maximum(hi, 0)
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(below), len(names)))
    for number, (row, _) in enumerate(below):
        for name, value in row.items():
            matrix[number, place[name]] = value
    c = np.zeros(len(names))
    for name, value in cost.items():
        c[place[name]] = value
    lows, highs, whole = (np.array(own) for own in zip(*names.values(), strict=True))
    found = milp(
        c,
        integrality=whole,
        bounds=(lows, highs),
        constraints=LinearConstraint(matrix, ub=np.array([right for _, right in below])),
    )
    assert found.status == 0
    there = np.clip(found.x[: len(low)], low, high)
    return sum(w * output_at(own, there) for own, w in zip(nets, weights, strict=True))


def output_at(layers, x):
    """Return the output of one ReLU network at its inputs."""
    for weight, bias in layers[:-1]:
        x = np.maximum(weight @ x + bias, 0)
    weight, bias = layers[-1]
    return float(weight[0] @ x + bias[0])


def relu_net(generator, n_in, width, depth):
    net = PSiLONNet(n_in, 1, width=width, depth=depth, generator=generator)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.5)
    return PlainNet(net)


def test_all_patterns_of_tiny_nets_lie_inside():
    generator = torch.Generator().manual_seed(0)
    proven, true = 0.0, 0.0
    for _ in range(size(6, long=60)):
        plain = relu_net(generator, 2, 3, 2)
        x = torch.randn(1, 2, generator=generator, dtype=torch.float64)
        box = Box.of(torch.full_like(x, 0.5))
        fall = float(linear_falls(AveragedNet.of(plain), x, box, both_ways(1, 1))[0, 0])
        low, high = (x[0] - 0.5).numpy(), (x[0] + 0.5).numpy()
        exact, value = least_over_patterns(affine_layers(plain), low, high), float(plain(x))
        assert value - exact <= fall + 1e-9
        proven, true = proven + fall, true + value - exact
    assert proven < 1.3 * true


@pytest.mark.parametrize("networks", [1, 3])
def test_exact_ranges_of_nets_and_averages_lie_inside(networks):
    """Thirty hidden neurons: the exact least value by mixed-integer programming."""
    generator = torch.Generator().manual_seed(networks)
    falls = np.zeros(3)
    for _ in range(size(4, long=40)):
        nets = [relu_net(generator, 4, 15 // networks, 2) for _ in range(networks)]
        share = torch.rand(networks, generator=generator, dtype=torch.float64) + 0.2
        columns, inputs = ColumnMap.identity(4), torch.arange(4)
        parts = [
            Part(net, own.reshape(1), columns, inputs) for net, own in zip(nets, share, strict=True)
        ]
        net = AveragedNet(parts, 4)
        x = torch.randn(1, 4, generator=generator, dtype=torch.float64)
        box, asked = Box.of(torch.full_like(x, 0.3)), both_ways(1, 1)
        fall = float(linear_falls(net, x, box, asked)[0, 0])
        exact = least_by_milp(
            [affine_layers(own) for own in nets],
            share.tolist(),
            (x[0] - 0.3).numpy(),
            (x[0] + 0.3).numpy(),
        )
        true, near = float(net(x)) - exact, float(LOCAL.falls(net, x, box, asked)[0, 0])
        assert true <= fall + 1e-9
        falls += (true, fall, near)
    linear, local = falls[1:] / falls[0]
    print(f"{networks} networks: linear {linear:.3f}, local {local:.3f} of the true fall")
    assert linear < 2.2
    assert linear < 0.7 * local


def one_layer(weight, edges):
    weight = torch.tensor(weight, dtype=torch.float64).reshape(1, 1, -1, 1)
    edges = torch.tensor(edges, dtype=torch.float64).reshape(1, -1, 1)
    return PlainLayer(weight, torch.zeros(1, 1, dtype=torch.float64), "knots", edges)


def test_networks_of_one_layer_cancel_before_the_box_is_applied():
    """A part may be a sum of functions of columns; with its negative it is nothing."""
    net = random_net(torch.Generator().manual_seed(5), "knots", 1, 1)
    columns, inputs = ColumnMap.identity(1), torch.arange(1)
    one = torch.ones(1, dtype=torch.float64)
    hat = PlainNet.of_layers([one_layer([1.0, -2.0, 3.0], [-0.5, 0.25])])
    slope = PlainNet.of_layers([one_layer([-1.0, 2.0, -3.0], [-0.5, 0.25])])
    x, box = torch.zeros(1, 1, dtype=torch.float64), Box.of(torch.ones(1, 1))
    both = AveragedNet([Part(hat, one, columns, inputs), Part(slope, one, columns, inputs)], 1)
    assert linear_falls(both, x, box, both_ways(1, 1)).max() < 1e-12
    # A single one is exact: -1 at the lower end, then up, down to -0.5 at 0.25, up again.
    single = AveragedNet([Part(hat, one, columns, inputs)], 1)
    falls = linear_falls(single, x, box, both_ways(1, 1))[0]
    torch.testing.assert_close(falls, torch.tensor([0.5, 1.75]).double(), rtol=0, atol=1e-12)
    # Beside a network with hidden layers nothing is lost either.
    deep = Part(PlainNet(net), one, columns, inputs)
    alone = linear_falls(AveragedNet([deep], 1), x, box, both_ways(1, 1))
    with_both = linear_falls(AveragedNet([deep, *both.parts], 1), x, box, both_ways(1, 1))
    torch.testing.assert_close(with_both, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_sums_behind_several_maps_are_bounded(seed):
    """Compare with many points of each column: never above the least, and close to it."""
    generator = torch.Generator().manual_seed(seed)
    bent = torch.tensor([True, True, False])
    maps = [
        ColumnMap.of("log_tails", bent, torch.randn(3, generator=generator)),
        ColumnMap.of("clipped", bent, None, torch.rand(3, generator=generator) + 0.3),
    ]
    x = torch.randn(1, 3, generator=generator, dtype=torch.float64)
    whole = InputBox.of(x, Box.of(torch.full_like(x, 0.4)))
    edges = torch.randn(2, 4, 3, generator=generator).double().sort(dim=1).values
    kinks = [own.inverse(edge) for own, edge in zip(maps, edges, strict=True)]
    points = finer(whole.cut(torch.cat(kinks)))
    grid = (
        torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None] * (whole.high - whole.low)
        + whole.low
    )
    sums, exact = ColumnSums(points, (), 1, 100), torch.zeros(4001, 3).double()
    for own, edge in zip(maps, edges, strict=True):
        weight = torch.randn(1, 1, 5, 3, generator=generator, dtype=torch.float64)
        layer = PlainLayer(weight, torch.zeros(1, 1).double(), "knots", edge.unsqueeze(0))
        sight = Sight.of(layer, torch.arange(3), points, (), own)
        largest = sight.values.abs().amax(dim=1).flatten(-2)
        sums.add(sight, weight.reshape(1, 1, 15), largest)
        exact += (layer.pieces(own(grid).unsqueeze(0))[0] * weight[0, 0]).sum(dim=1)
    least = float(exact.amin(dim=0).sum())
    found = float(sums.least())
    assert found <= least + 1e-9
    assert least - found < 0.02


@pytest.mark.parametrize("bend", ["log_tails", "clipped"])
def test_maps_are_inverted_and_bend_no_more_than_they_say(bend):
    generator = torch.Generator().manual_seed(0)
    scale = torch.rand(5, generator=generator) + 0.2
    columns = ColumnMap.of(bend, torch.ones(5).bool(), torch.randn(5, generator=generator), scale)
    z = torch.linspace(-6, 6, 20001, dtype=torch.float64).unsqueeze(1).expand(-1, 5)
    seen = columns(z)
    torch.testing.assert_close(columns.inverse(seen), z, rtol=1e-9, atol=1e-9)
    step = 12 / 20000
    second = (seen[2:] - 2 * seen[1:-1] + seen[:-2]).abs().amax(dim=0) / step**2
    assert (second <= columns.curvature * (1 + 1e-6)).all()
    assert (second >= columns.curvature * 0.99).all()


def test_a_category_that_jumps_is_enumerated():
    """One column of three at a time is 1: the least is over these states, not over a cube."""
    weight = torch.tensor([[[5.0, -2.0, 3.0, 1.0]]], dtype=torch.float64).unsqueeze(0)
    layer = PlainLayer(weight, torch.zeros(1, 1).double(), "none")
    net = AveragedNet.of(PlainNet.of_layers([layer]))
    states = np.concatenate([np.eye(3), np.zeros((1, 3))])
    x = torch.tensor([[1.0, 0.0, 0.0, 0.5]], dtype=torch.float64)
    radius = torch.tensor([[0.0, 0.0, 0.0, 0.25]])
    falls = linear_falls(net, x, Box.of(radius, [Jump(np.arange(3), states)]), both_ways(1, 1))[0]
    torch.testing.assert_close(falls, torch.tensor([7.25, 0.25]).double(), rtol=0, atol=1e-12)


@pytest.mark.long
def test_ten_thousand_nets_and_rows_hold():
    """Random averages of two kinds; the corners and random points of each box."""
    kinds = ("P-Net", "knots", "P-ResNet", "L2-IB-ResNet", "pruned crelu", "S-Net")
    generator = torch.Generator().manual_seed(77)
    for number in range(625):
        pair = (kinds[number % 6], kinds[number // 6 % 6])
        net = random_average(generator, pair)
        x = 3 * torch.randn(16, net.columns, generator=generator, dtype=torch.float64)
        size_ = 10.0 ** torch.empty(16, 1).uniform_(-3, 1, generator=generator).double()
        radius = size_ * torch.rand(16, net.columns, generator=generator, dtype=torch.float64)
        falls = linear_falls(net, x, Box.of(radius), both_ways(16, net.outputs))
        for _ in range(30):
            step = 2 * torch.rand(x.shape, generator=generator, dtype=torch.float64) - 1
            step = step.sign() if torch.rand((), generator=generator) < 0.5 else step
            moved = net(x + step * radius) - net(x)
            slack = 1e-9 * (1 + net(x).abs().amax())
            assert (torch.cat((-moved, moved), dim=1) <= falls + slack).all()


def test_monotone_networks_are_bounded_with_their_terms():
    """The term of one layer is added to the network before the box is applied."""
    generator = torch.Generator().manual_seed(3)
    edges = torch.tensor([[-0.5, -0.2, 0.0], [0.4, 0.3, 0.6]])
    module = MonotoneNet(
        PSiLONNet(3, 1, width=8, depth=2, edges=edges, generator=generator),
        torch.tensor([1, -1, 0]),
    )
    x = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    certifier = Certifier(module)
    low, high = certifier.output_range(x, 0.3)
    wide = certifier.output_range(x, 0.3, method="local")
    assert ((low >= wide[0]) & (high <= wide[1])).all()
    assert (high - low).sum() < 0.8 * (wide[1] - wide[0]).sum()
    for _ in range(100):
        step = (2 * torch.rand(x.shape, generator=generator, dtype=torch.float64) - 1).sign()
        moved = certifier.net(x + 0.3 * step).numpy()
        assert ((low <= moved) & (moved <= high)).all()
