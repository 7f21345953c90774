"""What is proved holds in exact arithmetic too: nothing is lost to rounding on the way to it."""

from fractions import Fraction
from itertools import pairwise

import pytest
import torch

from nn.exact_maps import as_fraction, exact_map
from psilonnet.certify import first_masses, forward_error, input_moves, local_moves
from psilonnet.certify.box import Box
from psilonnet.certify.combinations import Combinations
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainLayer, PlainNet

TINY = 2.0**-1074  # the smallest number above zero


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def layer(weight, bias=None, split="none", edges=None):
    """Return a layer of one member from a weight of shape (out, pieces, in)."""
    weight = tensor(weight)
    bias = weight.new_zeros(len(weight)) if bias is None else tensor(bias)
    edges = None if edges is None else tensor(edges).unsqueeze(0)
    return PlainLayer(weight.unsqueeze(0), bias.unsqueeze(0), split, edges)


def net_of(*layers):
    return PlainNet.of_layers(list(layers))


def exact_pieces(split, edges, z, column):
    """Return the pieces of a number as fractions."""
    if split == "none":
        return [z]
    if split == "relu":
        return [max(z, Fraction(0))]
    if split == "crelu":
        return [max(z, Fraction(0)), min(z, Fraction(0))]
    walls = [None, *(Fraction(float(k)) for k in edges[0, :, column]), None]

    def clip(value, low, high):
        value = value if low is None else max(value, low)
        return value if high is None else min(value, high)

    return [clip(z, *wall) - clip(Fraction(0), *wall) for wall in pairwise(walls)]


def exact_outputs(net, row):
    """Return the outputs of a net of one member, or of an average, in exact arithmetic."""
    if isinstance(net, AveragedNet):
        shares = [
            [
                Fraction(float(part.weight)) * v
                for v in exact_outputs(part.net, exact_seen(part, row))
            ]
            for part in net.parts
        ]
        return [sum(own) for own in zip(*shares, strict=True)]
    for each in net.layers:
        pieces = [exact_pieces(each.split, each.edges, z, i) for i, z in enumerate(row)]
        row = [
            Fraction(float(each.bias[0, o]))
            + sum(
                Fraction(float(w[t, i])) * pieces[i][t]
                for t in range(w.shape[0])
                for i in range(w.shape[1])
            )
            for o, w in enumerate(each.weight[0])
        ]
    return row


def exact_seen(part, row):
    """Return what a part sees of a row, with very many digits."""
    columns = part.columns
    return [
        as_fraction(exact_map(columns.bend, columns.center[k], columns.scale[k], row[i]))
        if columns.bends and columns.bent[k]
        else row[i]
        for k, i in enumerate(part.inputs.tolist())
    ]


def exact_falls(net, x, radius, combinations):
    """Return how far combinations fall, and then rise, from the row to two corners at most."""
    x, radius = ([Fraction(float(v)) for v in values] for values in (x, radius))
    here = exact_outputs(net, x)
    moved = [
        exact_outputs(net, [a + sign * r for a, r in zip(x, radius, strict=True)])
        for sign in (-1, 1)
    ]
    rises = [
        [
            sum(Fraction(float(c)) * (b - a) for c, a, b in zip(row, here, there, strict=True))
            for there in moved
        ]
        for row in combinations
    ]
    return [-min(0, *own) for own in rises] + [max(0, *own) for own in rises]


def assert_holds(net, x, radius, combinations):
    """Compare the proofs about one row with exact moves inside its box."""
    x, radius, combinations = tensor(x), tensor(radius), tensor(combinations)
    falls = exact_falls(net, x, radius, combinations)
    moves = [max(abs(a), abs(b)) for a, b in zip(falls, falls[len(combinations) :], strict=False)]
    near = local_moves(net, x.unsqueeze(0), radius.unsqueeze(0), combinations.unsqueeze(0))[0]
    table = torch.cat((combinations, -combinations))
    both = Combinations(table, torch.arange(len(table)).unsqueeze(0))
    box = Box.of(radius.unsqueeze(0))
    tight = linear_falls(AveragedNet.of(net), x.unsqueeze(0), box, both)[0]
    for fall, bound in zip(falls, tight.tolist(), strict=True):
        assert bound == torch.inf or fall <= Fraction(bound)
    per_unit = input_moves(net, combinations)
    for move, bound, own in zip(moves, near.tolist(), per_unit.tolist(), strict=True):
        assert bound == torch.inf or move <= Fraction(bound)
        if torch.inf not in own:
            far = sum(Fraction(m) * Fraction(float(r)) for m, r in zip(own, radius, strict=True))
            assert move <= far
    return near


ONE = [[1.0]]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_box_contains_what_its_radius_says(sign):
    """1 + 2^54 is above the edge at 2^54, but is rounded to it: the last piece was left out."""
    weight = [[[0.0], [1000.0]]] if sign > 0 else [[[1000.0], [0.0]]]
    net = net_of(layer(weight, split="knots", edges=[[sign * 2.0**54]]))
    near = assert_holds(net, [sign], [2.0**54], ONE)
    assert near >= 1000


def test_box_of_a_huge_radius_keeps_every_piece_it_cannot_exclude():
    """Intervals that overflow say nothing about pieces; they were taken for constant."""
    grow = layer([[[1e200], [1e200]]], split="crelu")
    net = net_of(layer([[[1e200]]]), grow, layer([[[1e-300], [1e-300]]], split="crelu"))
    near = assert_holds(net, [0.0], [1e-90], ONE)
    assert near >= 1e10
    assert local_moves(net, tensor([[0.0]]), tensor([[1e308]]), tensor([ONE])) == torch.inf
    assert local_moves(net, tensor([[0.0]]), tensor([[torch.inf]]), tensor([ONE])) == torch.inf


@pytest.mark.parametrize("split", ["relu", "crelu"])
def test_line_through_ends_that_are_too_far_apart_proves_nothing(split):
    """The width of an interval overflowed, and the line through its ends was taken for level."""
    pieces = {"relu": [[-0.1]], "crelu": [[-0.1], [0.0]]}[split]
    net = net_of(layer([[[0.95e308]]]), layer([pieces], [0.5], split))
    assert_holds(net, [0.0], [1.0], ONE)
    box, asked = Box.of([[1.0]]), Combinations(tensor(ONE), torch.tensor([[0]]))
    assert linear_falls(AveragedNet.of(net), tensor([[0.0]]), box, asked) == torch.inf


def test_interval_keeps_what_underflow_loses():
    """Half a smallest number is rounded to zero, and so is its interval, but not what moves."""
    first = layer([[[TINY]]])
    net = net_of(first, layer([[[1e300]]], split="relu"), layer([[[1e300]]], split="relu"))
    near = assert_holds(net, [0.5], [0.1], ONE)
    assert near > 1e270


def test_products_keep_what_underflow_loses():
    small = layer([[[1e-200]]])
    net = net_of(small, small, layer([[[1e-200]]]), small)
    assert assert_holds(net, [0.0], [1e300], ONE) > 0
    assert (first_masses(net, tensor(ONE)) > 0).all()
    assert assert_holds(net_of(layer([[[1e-200]]])), [0.0], [1e-200], ONE) > 0


def test_column_that_is_not_read_moves_nothing():
    """Not even by what could be lost to underflow; in a box that is next to nothing."""
    net = net_of(layer([[[1.0, 0.0]], [[2.0, 0.0]]]), layer([[[3.0, -1.0]]], split="relu"))
    assert input_moves(net, tensor(ONE))[0, 1] == 0
    near = local_moves(net, tensor([[1.0, 1.0]]), tensor([[0.0, 1.0]]), tensor([ONE]))
    assert near < 1e-290


@pytest.mark.parametrize("scale", [1.0, 1e-160])
def test_combination_keeps_what_cancels(scale):
    """1e16 + 1 - 1e16 is 1, and 0 as it is summed up."""
    net = net_of(layer([[[1e16 * scale]], [[1.0 * scale]], [[-1e16 * scale]]]))
    near = assert_holds(net, [0.0], [1.0], [[1.0, 1.0, 1.0]])
    assert near >= scale


@pytest.mark.parametrize("seed", range(60))
def test_proofs_hold_in_exact_arithmetic(seed):
    """Random nets of wild magnitudes, in boxes that end where a knot is or nearly so."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape, spread):
        exponent = spread * torch.randn(shape, generator=generator).double()
        size = 10.0 ** exponent.clamp(-320, 300)
        sign = torch.randint(-1, 2, shape, generator=generator)
        return sign * size

    n_in, width, spread = 2, 3, (1.0, 20.0, 80.0)[seed % 3]
    x, radius = draw(n_in, spread=spread), draw(n_in, spread=spread).abs()
    ends = torch.stack((x - radius, x + radius)).sort(dim=0).values
    layers = [layer(draw(width, 3, n_in, spread=spread).tolist(), None, "knots", ends.tolist())]
    for split, pieces, out in (("relu", 1, width), ("crelu", 2, 3)):
        bias = draw(out, spread=spread).tolist()
        layers.append(layer(draw(out, pieces, width, spread=spread).tolist(), bias, split))
    combinations = draw(2, 3, spread=spread / 2).tolist()
    assert_holds(net_of(*layers), x.tolist(), radius.tolist(), combinations)


@pytest.mark.parametrize("seed", range(45))
def test_proofs_about_averages_hold_in_exact_arithmetic(seed):
    """Two parts of wild magnitudes and weights, behind maps, that read two of three columns."""
    generator = torch.Generator().manual_seed(seed)
    spread = (0.5, 5.0, 25.0)[seed % 3]

    def draw(*shape, spread=spread):
        exponent = spread * torch.randn(shape, generator=generator).double()
        sign = torch.randint(-1, 2, shape, generator=generator)
        return sign * 10.0 ** exponent.clamp(-100, 100)

    x, radius = draw(3), draw(3).abs()
    bent = torch.tensor([True, True, False])
    parts = []
    for bend, places in (("log_tails", [0, 2]), (("clipped", "identity")[seed % 2], [0, 1])):
        inputs = torch.tensor(places)
        scale = draw(3, spread=spread / 3).abs()
        columns = ColumnMap.of(bend, bent, draw(3), torch.where(scale > 0, scale, 1.0)).at(inputs)
        # Knots where the ends of the box come out, or nearly so.
        ends = torch.stack([columns((x + s * radius)[inputs]) for s in (-1, 1)]).sort(dim=0).values
        layers = [layer(draw(3, 3, 2).tolist(), None, "knots", ends.tolist())]
        layers.append(layer(draw(3, 2, 3).tolist(), draw(3).tolist(), "crelu"))
        layers = layers if bend == "log_tails" else [*layers, layer(draw(3, 1, 3).tolist())]
        weight = draw(1).abs() + (bend == "log_tails")
        parts.append(Part(net_of(*layers), weight, columns, inputs))
    assert_holds(AveragedNet(parts, 3), x.tolist(), radius.tolist(), draw(2, 3).tolist())


@pytest.mark.parametrize("bend", ["log_tails", "clipped"])
@pytest.mark.parametrize("seed", range(6))
def test_forward_error_covers_maps_and_averages(bend, seed):
    """Where the map loses most: near a center far from zero, and one part outweighs the other."""
    generator = torch.Generator().manual_seed(seed)
    center = 10.0 ** torch.empty(2).uniform_(-2, 9, generator=generator).double()
    scale = 10.0 ** torch.empty(2).uniform_(-3, 3, generator=generator).double()
    columns = ColumnMap.of(bend, torch.tensor([True, True]), center, scale)
    parts = []
    for weight in (0.9, 0.1 + 1e-17):
        large = 1e8 * torch.randn(3, 1, 2, generator=generator).double()
        small = torch.randn(1, 1, 3, generator=generator).double()
        net = net_of(layer(large.tolist()), layer(small.tolist(), [1.0], "relu"))
        parts.append(Part(net, tensor([weight]), columns, torch.arange(2)))
    net = AveragedNet(parts, 2)
    rows = center + scale * 10 * torch.randn(20, 2, generator=generator).double()
    reach = (rows - center).abs().amax() * 2
    errors = forward_error(net, rows, torch.zeros(20).double())
    near = forward_error(net, center.unsqueeze(0), reach.reshape(1))
    for row, output, error in zip(rows, net(rows), errors, strict=True):
        (exact,) = exact_outputs(net, [Fraction(float(v)) for v in row])
        strayed = abs(Fraction(float(output)) - exact)
        assert strayed <= Fraction(float(error))
        assert strayed <= Fraction(float(near))


@pytest.mark.parametrize(("unit", "dtype"), [(2.0**-53, torch.float64), (2.0**-24, torch.float32)])
def test_forward_error_covers_underflow(unit, dtype):
    """A product below the smallest number is lost, however much is made of it afterwards."""
    small = 2.0 ** (-80 if dtype == torch.float32 else -600)
    net = net_of(layer([[[small]]]), layer([[[1 / small]]]), layer([[[1 / small]]]))
    h = tensor([[[small]]]).to(dtype)
    for each in net.layers:
        h = h @ each.weight[:, :, 0].to(dtype).mT
    (exact,) = exact_outputs(net, [Fraction(small)])
    error = forward_error(net, tensor([[small]]), tensor([0.0]), unit=unit)
    assert abs(Fraction(float(h)) - exact) <= Fraction(float(error))
