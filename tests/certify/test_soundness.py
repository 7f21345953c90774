"""Certificates under attack: no input in the box may leave what was proven."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from certify.attacks import farthest_moves
from certify.random_averages import KINDS, random_average, random_net
from psilonnet.certify import Box, Effort, attack, forward_error, input_moves, local_moves
from psilonnet.certify.box import Jump
from psilonnet.certify.combinations import Combinations, both_ways
from psilonnet.certify.global_bound import global_moves
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.functional import path_matrix
from psilonnet.nn import AveragedNet, PlainNet, PSiLONNet, fold
from psilonnet.training import stack_members
from sizes import size

NETS = size(26, long=2_600)


def assert_linear_bounds_hold(net, x, radius, rows, seed):
    """Compare how far combinations can fall with what an attack finds, up and down."""
    asked = Combinations(torch.cat((rows, -rows)), torch.arange(2 * len(rows)).expand(len(x), -1))
    slack = 2 * forward_error(net, x, radius.amax(dim=-1)).unsqueeze(-1)
    slack = slack * asked.table.abs().sum(dim=-1)
    falls = linear_falls(net, x, Box.of(radius), asked)
    found = attack(
        net, x, Box.of(radius), -asked.expanded, effort=Effort(climbs=3, seed=seed)
    ).moves
    assert (found <= falls + slack).all()
    assert falls.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_attack_moves_outputs_farther_than_proven(kind):
    generator = torch.Generator().manual_seed(KINDS.index(kind))
    for number in range(max(1, NETS // len(KINDS))):
        plain = PlainNet(random_net(generator, kind))
        n_in, n_out = plain.layers[0].weight.shape[-1], plain.layers[-1].weight.shape[1]
        x = torch.randn(6, n_in, generator=generator, dtype=torch.float64)
        size = 10.0 ** torch.empty(6, 1).uniform_(-3, 1, generator=generator).double()
        radius = size * torch.rand(6, n_in, generator=generator, dtype=torch.float64)
        rows = torch.randn(2, n_out, generator=generator, dtype=torch.float64)
        combinations = rows.expand(6, 2, n_out)
        slack = 2 * forward_error(plain, x, radius.amax(dim=-1)).unsqueeze(-1) * rows.abs().sum(-1)
        far = radius @ input_moves(plain, rows).mT
        near = local_moves(plain, x, radius, combinations)
        found = farthest_moves(plain, x, radius, combinations, seed=number)
        assert (near <= far * (1 + 1e-9)).all()
        assert (found <= near + slack).all()
        assert_linear_bounds_hold(AveragedNet.of(plain), x, radius, rows, number)


@pytest.mark.parametrize("kind", KINDS)
def test_no_attack_moves_averages_farther_than_proven(kind):
    """Two parts of different shapes behind maps of their own, which read some of the columns."""
    generator = torch.Generator().manual_seed(200 + KINDS.index(kind))
    for number in range(max(2, NETS // len(KINDS))):
        net = random_average(generator, (kind, KINDS[number % len(KINDS)]))
        n_in, n_out = net.columns, net.outputs
        x = 3 * torch.randn(6, n_in, generator=generator, dtype=torch.float64)
        size = 10.0 ** torch.empty(6, 1).uniform_(-3, 1.5, generator=generator).double()
        radius = size * torch.rand(6, n_in, generator=generator, dtype=torch.float64)
        rows = torch.randn(2, n_out, generator=generator, dtype=torch.float64)
        combinations = rows.expand(6, 2, n_out)
        slack = 2 * forward_error(net, x, radius.amax(dim=-1)).unsqueeze(-1) * rows.abs().sum(-1)
        far = radius @ input_moves(net, rows).mT
        near = local_moves(net, x, radius, combinations)
        found = farthest_moves(net, x, radius, combinations, seed=number)
        assert (near <= far * (1 + 1e-9)).all()
        assert (found <= near + slack).all()
        assert_linear_bounds_hold(net, x, radius, rows, number)


@pytest.mark.parametrize("kind", KINDS)
def test_no_jump_moves_averages_farther_than_proven(kind):
    """A part may read all, some or none of the columns of a category."""
    generator = torch.Generator().manual_seed(300 + KINDS.index(kind))
    bent = torch.tensor([True, False, False, False, True])
    states = np.concatenate([np.eye(3), np.zeros((1, 3))])
    places = np.array([1, 2, 3])
    for number in range(max(2, NETS // len(KINDS))):
        net = random_average(generator, (kind, KINDS[-1 - number % len(KINDS)]), 5, bent)
        x = torch.randn(4, 5, generator=generator, dtype=torch.float64)
        x[:, places] = torch.from_numpy(states)
        radius = torch.rand(4, 5, generator=generator, dtype=torch.float64)
        radius[:, places] = 0.0
        box, asked = Box.of(radius, [Jump(places, states)]), both_ways(4, net.outputs)
        slack = 2 * forward_error(net, x, box.hull.amax(dim=-1)).unsqueeze(-1)
        far = global_moves(net, x, box, asked) + slack
        near = local_moves(net, x, box.hull, asked.expanded) + slack
        tight = linear_falls(net, x, box, asked) + slack
        begin = net(x)
        for state in torch.from_numpy(states):
            there = x.clone()
            there[:, places] = state
            for _ in range(20):  # to another level, and at the same time to a corner of the box
                corner = torch.randint(0, 2, (4, 5), generator=generator).double() * 2 - 1
                moved = net(there + corner * radius) - begin
                fallen = torch.cat((-moved, moved), dim=1)
                assert (fallen <= torch.minimum(torch.minimum(far, near), tight)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_in_float32_strays_no_farther_than_its_own_bound(kind):
    generator = torch.Generator().manual_seed(100 + KINDS.index(kind))
    plain = PlainNet(random_net(generator, kind))
    x = torch.randn(50, plain.layers[0].weight.shape[-1], generator=generator).double() / 3
    h = x.float()
    for layer in plain.layers:
        edges = None if layer.edges is None else layer.edges.float()
        h = replace(layer, weight=layer.weight.float(), bias=layer.bias.float(), edges=edges)(h)
    strayed = (h.mean(dim=0).double() - AveragedNet.of(plain)(x)).abs().amax(dim=-1)
    here = torch.zeros(len(x), dtype=torch.float64)
    assert (strayed <= forward_error(plain, x, here, unit=2**-24)).all()
    assert (strayed > forward_error(plain, x, here)).any()  # which is not that of float64


def kinks(plain, start, end):
    """Return all points of a segment where a neuron or a knot switches, and its ends.

    Between two of them the network is linear, so its extremes over the segment are among them.
    """
    share = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for number, layer in enumerate(plain.layers):
        if layer.split == "none":
            continue
        h = (start + share[:, None] * (end - start)).expand(len(layer.weight), -1, -1)
        for below in plain.layers[:number]:
            h = below(h)
        edges = layer.edges if layer.edges is not None else h.new_zeros(len(h), 1, h.shape[-1])
        gap = h.unsqueeze(1) - edges.unsqueeze(2)  # (members, edges, points, coordinates)
        a, b = gap[:, :, :-1], gap[:, :, 1:]
        width = share.diff()[:, None]
        crossing = share[:-1, None] + (a / (a - b)).nan_to_num(0, 0, 0) * width
        share = torch.cat([share, crossing[a * b < 0]]).unique()
    return start + share[:, None] * (end - start)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_extremes_along_segments_stay_inside(kind):
    generator = torch.Generator().manual_seed(100 + KINDS.index(kind))
    for _ in range(6):
        plain = PlainNet(random_net(generator, kind))
        n_in, n_out = plain.layers[0].weight.shape[-1], plain.layers[-1].weight.shape[1]
        x = torch.randn(1, n_in, generator=generator, dtype=torch.float64)
        corner = torch.randint(0, 2, (n_in,), generator=generator).double() * 2 - 1
        points = kinks(plain, x[0] - 0.7 * corner, x[0] + 0.7 * corner)  # of one input: the box
        found = (plain(points) - plain(x)).mean(dim=0).abs().amax(dim=0)
        eye = torch.eye(n_out, dtype=torch.float64)
        near = local_moves(plain, x, torch.full_like(x, 0.7), eye.unsqueeze(0))[0]
        assert (found <= near + 1e-12).all()
        between = (points[1:] + points[:-1]) / 2
        ends = (plain(points)[:, 1:] + plain(points)[:, :-1]) / 2
        torch.testing.assert_close(plain(between), ends, rtol=1e-9, atol=1e-9)


def test_plain_net_is_the_network_and_its_bound_the_merged_one():
    generator = torch.Generator().manual_seed(1)
    for kind in KINDS:
        net = random_net(generator, kind)
        plain = PlainNet(net)
        x = torch.randn(5, plain.layers[0].weight.shape[-1], generator=generator)
        with torch.no_grad():
            outputs = net.double()(x.double())
            outputs = outputs if outputs.dim() == 3 else outputs.unsqueeze(0)
            torch.testing.assert_close(plain(x), outputs, rtol=1e-6, atol=1e-6)
            n_out = outputs.shape[-1]
            eye = torch.eye(n_out, dtype=torch.float64)
            bound = path_matrix(net.weights(), residual=net.residual, bound="merged")
            bound = bound.mean(dim=0) if bound.dim() == 3 else bound
            torch.testing.assert_close(input_moves(plain, eye), bound, rtol=1e-5, atol=1e-6)


def test_tiny_boxes_have_tight_local_bounds():
    generator = torch.Generator().manual_seed(3)
    plain = PlainNet(random_net(generator, "P-Net"))
    n_in, n_out = plain.layers[0].weight.shape[-1], plain.layers[-1].weight.shape[1]
    x = torch.randn(8, n_in, generator=generator, dtype=torch.float64)
    radius = torch.full_like(x, 1e-9)
    eye = torch.eye(n_out, dtype=torch.float64).expand(8, n_out, n_out)
    near = local_moves(plain, x, radius, eye)
    far = radius @ input_moves(plain, eye[0]).mT
    assert near.sum() < 0.9 * far.sum()
    assert np.isfinite(near.numpy()).all()


def test_plain_torch_nets_are_certified_like_ours():
    generator = torch.Generator().manual_seed(4)
    ours = random_net(generator, "P-Net")
    folded = fold(ours)
    x = torch.randn(6, folded[0].in_features, generator=generator, dtype=torch.float64)
    one = torch.eye(folded[-1].out_features, dtype=torch.float64)
    torch.testing.assert_close(
        input_moves(PlainNet(folded), one), input_moves(PlainNet(ours), one), rtol=1e-5, atol=1e-6
    )
    radius = torch.full_like(x, 0.1)
    asked = one.expand(6, *one.shape)
    found = farthest_moves(PlainNet(folded), x, radius, asked)
    assert (found <= local_moves(PlainNet(folded), x, radius, asked) + 1e-9).all()
    for wrong in (torch.nn.Tanh(), torch.nn.Dropout()):
        with pytest.raises(TypeError, match=r"nn.Sequential of nn.Linear and nn.ReLU. Got"):
            PlainNet(torch.nn.Sequential(torch.nn.Linear(2, 2), wrong))
    with pytest.raises(TypeError, match="last layer"):
        PlainNet(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))


def test_a_single_layer_moves_by_its_weights():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    one = torch.eye(2, dtype=torch.float64)
    moves = input_moves(PlainNet(net), one)
    torch.testing.assert_close(moves, net[0].weight.double().abs())
    box = torch.ones(1, 3, dtype=torch.float64)
    near = local_moves(PlainNet(net), box, box, one.unsqueeze(0))
    torch.testing.assert_close(near[0], moves.sum(dim=1))


def test_rounding_of_an_average_grows_with_its_members():
    single = PSiLONNet(1, 1, width=1, depth=1)
    x, radius = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    few, many = (forward_error(PlainNet(stack_members([single] * k)), x, radius) for k in (1, 1000))
    assert many - few > 999 * 2.0**-53
