"""The penalty is a bound, for every chain of our layers: no pair of points moves farther."""

import pytest
import torch
from torch import nn

from nn.random_nets import make_random_net, scramble_
from psilonnet.functional import closed_form, path_norm
from psilonnet.nn import (
    VARIANTS,
    CReLUBlock,
    CReLULinear,
    KnotLinear,
    Network,
    NormalizedLinear,
    ReLULinear,
    has_closed_form,
    make_net,
    path_norm_penalty,
    shared_weights,
    weight_decay_penalty,
)

BOUNDS = ("merged", "improved", "original")
KINDS = ("linear", "relu", "crelu", "block", "knots")
SETTINGS = [
    {"length": "shared"},
    {"length": "per_row"},
    {"length": "none"},
    {"normalization": "l2", "length": "per_row"},
    {"normalization": "none", "length": "none"},
]


def random_layer(kind, n_in, n_out, generator, settings):
    if kind == "block":
        return CReLUBlock(n_in, **settings)
    if kind == "knots":
        edges = torch.randn(3, n_in, generator=generator, dtype=torch.float64).sort(dim=0).values
        return KnotLinear(edges, n_out, **settings)
    layers = {"linear": NormalizedLinear, "relu": ReLULinear, "crelu": CReLULinear}
    return layers[kind](n_in, n_out, **settings)


def random_net(kinds, generator, settings=None, members=(), least=1):
    """Return a chain of layers of given kinds and random widths, far from its start."""
    widths = torch.randint(least, 5, (len(kinds) + 1,), generator=generator).tolist()
    layers = []
    for k, kind in enumerate(kinds):
        if settings is None:
            own = SETTINGS[int(torch.randint(len(SETTINGS), (), generator=generator))]
        else:
            own = settings
        widths[k + 1] = widths[k] if kind == "block" else widths[k + 1]
        own = {**own, "members": members}
        layers.append(random_layer(kind, widths[k], widths[k + 1], generator, own))
    net = Network(*layers).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator).double())
    return net


def random_kinds(generator):
    """Return the kinds of up to six layers; every place can be a block."""
    count = int(torch.randint(1, 7, (), generator=generator))
    return [KINDS[k] for k in torch.randint(len(KINDS), (count,), generator=generator)]


def align_(net):
    """Remove the signs of a net; far along the positive axis all paths then pull the same way."""
    with torch.no_grad():
        for layer in net.layers:
            size = layer.direction.abs()
            largest = size.amax(dim=-2, keepdim=True).expand_as(size)
            layer.direction.copy_(
                largest if isinstance(layer, KnotLinear) else size.sort(dim=-2, descending=True)[0]
            )
            for parameter in (layer.length, layer.bias):
                if parameter is not None:
                    parameter.abs_()
    return net


def ratio(net, a, b):
    """Return ``||f(a) - f(b)||_1 / ||a - b||_inf`` of each pair of rows."""
    moved = (net(a) - net(b)).abs().sum(dim=-1)
    return moved / (a - b).abs().amax(dim=-1).clamp(min=1e-9)


def largest_ratio(net, generator, steps=20):
    """Climb the ratio from random pairs of points, near to and far from each other."""
    n_in = net.layers[0].direction.shape[-1]
    size = 10.0 ** torch.linspace(-2, 2, 40, dtype=torch.float64).unsqueeze(-1)
    a, gap = torch.randn(2, 40, n_in, generator=generator, dtype=torch.float64)
    a, b = a * size.flip(0).clamp(max=3), a * size.flip(0).clamp(max=3) + size * gap
    found = torch.zeros((), dtype=torch.float64)
    for _ in range(steps):
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        ratios = ratio(net, a, b)
        found = torch.maximum(found, ratios.detach().max())
        if not ratios.requires_grad:
            break
        for_a, for_b = torch.autograd.grad(ratios.sum(), (a, b))
        a, b = a + 0.2 * size * for_a.sign(), b + 0.2 * size * for_b.sign()
    return found


@pytest.mark.parametrize("seed", range(20))
def test_penalty_of_a_mixed_net_is_above_every_ratio_found(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):
        net = random_net(random_kinds(generator), generator)
        merged, improved, original = (path_norm_penalty(net, bound=bound) for bound in BOUNDS)
        assert largest_ratio(net, generator) <= merged * (1 + 1e-6) + 1e-9
        assert merged <= improved * (1 + 1e-12)
        assert improved <= original * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_penalty_of_an_aligned_mixed_net_is_reached(seed):
    """With positive weights all paths add up far out: a bound below this one would be wrong."""
    generator = torch.Generator().manual_seed(seed)
    net = align_(random_net(random_kinds(generator), generator))
    far = torch.full((1, net.layers[0].direction.shape[-1]), 1e6, dtype=torch.float64)
    for bound in ("improved", "merged"):
        penalty = path_norm_penalty(net, bound=bound)
        torch.testing.assert_close(ratio(net, far, 2 * far)[0], penalty, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("net", "bound"),
    [
        (lambda: Network(CReLUBlock(2)), 2.0),
        (lambda: Network(CReLUBlock(2), CReLULinear(2, 1, length="per_row")), 1.0),
        (lambda: Network(NormalizedLinear(3, 2), CReLUBlock(2)), 2.0),
        (lambda: Network(NormalizedLinear(3, 2), CReLULinear(2, 4), CReLUBlock(4)), 4.0),
        (lambda: Network(NormalizedLinear(3, 5), CReLULinear(5, 4)), 4.0),  # one length, four rows
    ],
)
def test_penalty_of_a_block_at_its_start_is_that_of_the_identity(net, bound):
    """At their start blocks are the identity, and all lengths of the other layers are 1."""
    for name in ("improved", "merged"):
        assert path_norm_penalty(net(), bound=name).item() == pytest.approx(bound)


@pytest.mark.parametrize("members", [(), (3,)])
@pytest.mark.parametrize("seed", range(20))
def test_closed_form_of_a_mixed_net_is_its_matrix_product(seed, members):
    generator = torch.Generator().manual_seed(seed)
    kinds = random_kinds(generator)
    net = random_net(kinds, generator, {"length": "shared"}, members)
    assert has_closed_form(net)
    assert net.residual == tuple(kind == "block" for kind in kinds)
    expected = path_norm(net.weights(), residual=net.residual, bound="improved")
    torch.testing.assert_close(path_norm_penalty(net), expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_penalty_of_a_mixed_net_reaches_every_parameter_it_controls(settings, bound, generator):
    kinds = ["block", "crelu", "block", "linear", "knots", "block", "relu", "block"]
    net = random_net(kinds, generator, settings, least=2)
    path_norm_penalty(net, bound=bound).backward()
    rows_are_fixed = bound == "improved" and settings.get("normalization", "l1") == "l1"
    for k, layer in enumerate(net.layers):
        if layer.length is not None:
            assert layer.length.grad.abs().sum() > 1e-3, k
        # A direction does not matter where all that it is multiplied with are equal numbers.
        if not (rows_are_fixed and (k == 0 or settings["length"] != "per_row")):
            assert layer.direction.grad.abs().sum() > 1e-3, k
        assert layer.bias.grad is None


@pytest.mark.parametrize("kind", ["relu", "crelu", "residual"])
@pytest.mark.parametrize("depth", [1, 3, 12])
@pytest.mark.parametrize("pieces", [1, 2, 9])
@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_closed_form_is_the_improved_bound_of_the_weights(kind, depth, pieces, mix, generator):
    net = make_random_net(kind, depth, generator, pieces)
    net.set_prune_mix(mix)
    assert has_closed_form(net)
    improved = path_norm(net.weights(), residual=net.residual, bound="improved")
    torch.testing.assert_close(path_norm_penalty(net), improved, rtol=1e-10, atol=0)
    torch.testing.assert_close(
        closed_form(net.lengths(), residual=net.residual), improved, rtol=1e-10, atol=0
    )


def direction_is_free(layer, first, regularizer):
    """Whether normalisation already fixes what the penalty sees of a direction."""
    if regularizer == "weight_decay":
        return layer.normalization == "l2" and layer.pieces == 1
    return layer.normalization == "l1" and first


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_reaches_what_it_controls(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4), generator)
    VARIANTS[variant].penalty(net).backward()
    for k, layer in enumerate(net.layers):
        if layer.length is not None:
            assert layer.length.grad.abs().sum() > 1e-3
        if has_closed_form(net):
            assert layer.direction.grad is None
        elif not direction_is_free(layer, k == 0, VARIANTS[variant].regularizer):
            assert layer.direction.grad.abs().sum() > 1e-3
        assert layer.bias.grad is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_is_the_same_with_shared_weights(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4).double(), generator)
    x = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    outside = (net(x), VARIANTS[variant].penalty(net))
    with shared_weights(net):
        inside = (net(x), VARIANTS[variant].penalty(net))
    torch.testing.assert_close(inside, outside, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_of_members_is_that_of_each(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4, members=(3,)).double(), generator)
    single = make_net(variant, 6, 3, width=12, depth=4).double()
    together = VARIANTS[variant].penalty(net)
    assert together.shape == (3,)
    for m in range(3):
        single.load_state_dict({k: v[m] if v.dim() else v for k, v in net.state_dict().items()})
        torch.testing.assert_close(VARIANTS[variant].penalty(single), together[m])


@pytest.mark.parametrize("bound", ["original", "improved", "merged"])
def test_penalty_of_a_plain_sequential_is_its_path_norm(bound, generator):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    a, b, c = (net[i].weight.detach().abs() for i in (0, 2, 4))
    torch.testing.assert_close(path_norm_penalty(net, bound=bound), (c @ b @ a).sum())


def test_penalty_refuses_what_the_theorem_does_not_cover():
    net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 2))
    with pytest.raises(TypeError, match="Got GELU instead"):
        path_norm_penalty(net)


def test_weight_decay_is_the_sum_of_squares(generator):
    net = scramble_(make_net("S-ResNet", 6, 3, width=8, depth=3), generator)
    expected = sum(w.square().sum() for w in net.weights())
    torch.testing.assert_close(weight_decay_penalty(net), expected)
