import copy

import pytest
import torch
from torch import nn

from nn.random_nets import make_edges, scramble_
from psilonnet.nn import (
    CReLUBlock,
    CReLULinear,
    MonotoneNet,
    Network,
    NormalizedLinear,
    PSiLONNet,
    PSiLONResNet,
    ReLULinear,
    path_norm_penalty,
)
from psilonnet.training import stack_members
from sizes import size

SIGNS = [1, 0, -1, 1]


def net_of(kind, seed=0):
    """Return a random net of a kind with four inputs and one output, in float64."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"width": 12, "depth": 3}
    if kind == "sequential":
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, 1))
        return net.double()
    if kind == "first layer a block":
        net = Network(CReLUBlock(4), ReLULinear(4, 6), CReLULinear(6, 1))
        return scramble_(net.double(), generator)
    edges = make_edges(6, 4, generator) if kind.startswith("knots") else None
    if kind in ("residual", "knots, residual"):
        net = PSiLONResNet(4, 1, edges=edges, **shape)
    elif kind in ("crelu", "l2"):
        directions = {"normalization": "l2", "length": "per_row"} if kind == "l2" else {}
        net = PSiLONNet(4, 1, activation="crelu", **directions, **shape)
    else:
        net = PSiLONNet(4, 1, edges=edges, **shape)
    net = scramble_(net.double(), generator)
    if kind == "pruned":
        net.set_prune_mix(1.0)
    if kind == "knots, population":
        other = scramble_(copy.deepcopy(net), generator)
        return stack_members([net, other])
    return net


KINDS = [
    "relu",
    "crelu",
    "l2",
    "residual",
    "pruned",
    "knots",
    "knots, residual",
    "knots, population",
    "first layer a block",
    "sequential",
]
kinds = pytest.mark.parametrize("kind", KINDS)


def falls(net, x, moved):
    """Return by how much outputs go against the signs when single inputs rise."""
    return net(x) - net(moved)


@kinds
def test_no_pair_of_rows_goes_against_a_sign(kind):
    """Issue: 10,000 random pairs, in float64."""
    pairs = size(1500, long=10_000)
    net, generator = MonotoneNet(net_of(kind), SIGNS), torch.Generator().manual_seed(1)
    x = 3 * torch.randn(pairs, 4, generator=generator).double()
    rise = torch.rand(pairs, generator=generator).double() * 10 ** torch.randint(-4, 2, (pairs,))
    with torch.no_grad():
        for column, sign in ((0, 1), (2, -1), (3, 1)):
            moved = x.clone()
            moved[:, column] += rise
            gone = sign * falls(net, x, moved)
            assert gone.max() <= 1e-11 * (1 + net(x).abs().max())
            assert (gone < -1e-9).any()  # it does move, and the right way


@kinds
def test_a_gradient_search_finds_no_step_against_a_sign(kind):
    net, generator = MonotoneNet(net_of(kind, seed=3), SIGNS), torch.Generator().manual_seed(2)
    net.requires_grad_(False)
    x = 2 * torch.randn(64, 4, generator=generator).double()
    for column, sign in ((0, 1), (2, -1)):
        row = x.clone().requires_grad_()
        rise = torch.zeros(64, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([row, rise], lr=0.1)
        worst = -torch.inf
        for _ in range(size(20, long=200)):
            moved = row + rise.exp().unsqueeze(-1) * torch.eye(4, dtype=torch.float64)[column]
            gone = (sign * falls(net, row, moved)).squeeze(-1)
            worst = max(worst, float(gone.detach().max()))
            optimizer.zero_grad()
            (-gone.sum()).backward()
            optimizer.step()
        assert worst <= 1e-11


@kinds
def test_a_free_network_is_not_monotone(kind):
    """Otherwise the tests above could not fail."""
    net, generator = net_of(kind, seed=3), torch.Generator().manual_seed(1)
    x = 3 * torch.randn(1000, 4, generator=generator).double()
    with torch.no_grad():
        gone = [(s * (net(x) - net(x + torch.eye(4)[k]))).max() for k, s in ((0, 1), (2, -1))]
    assert max(gone) > 1e-3


@kinds
def test_the_penalty_counts_inputs_with_a_sign_twice(kind):
    net = net_of(kind)
    whole = MonotoneNet(net, SIGNS)
    term = whole.coefficients().amax(dim=-2).sum(dim=-1)
    torch.testing.assert_close(path_norm_penalty(whole), path_norm_penalty(net) + term)
    assert path_norm_penalty(MonotoneNet(net, [0] * 4)).equal(path_norm_penalty(net) + 0.0)
    generator = torch.Generator().manual_seed(5)
    a, b = 3 * torch.randn(2, 300, 4, generator=generator).double()
    with torch.no_grad():
        moved = (whole(a) - whole(b)).abs().squeeze(-1) / (a - b).abs().amax(dim=-1)
        assert (moved <= path_norm_penalty(whole).unsqueeze(-1) * (1 + 1e-12)).all()


@kinds
def test_gradients_reach_every_weight_through_the_term(kind):
    net = MonotoneNet(net_of(kind), SIGNS)
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)).double()
    net.coefficients().sum().backward()
    first = net_first_weight(net)
    assert first.grad.abs().sum() > 0
    net.zero_grad()
    (net(x).square().mean() + 0.1 * path_norm_penalty(net).sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def net_first_weight(net):
    first = net.net[0]
    return first.direction if isinstance(first, NormalizedLinear) else first.weight


def test_shapes_are_those_of_the_network():
    net, members = net_of("knots"), net_of("knots, population")
    x = torch.randn(7, 4).double()
    for inner in (net, members):
        whole = MonotoneNet(inner, SIGNS)
        assert whole(x).shape == inner(x).shape
        assert whole(x[0]).shape == inner(x[0]).shape
        torch.testing.assert_close(whole(x[0]), whole(x)[..., 0, :])
    again = MonotoneNet(net_of("knots", seed=9), [0] * 4)
    again = copy.deepcopy(again)
    again.load_state_dict({**MonotoneNet(net, [0] * 4).state_dict()})
    torch.testing.assert_close(again(x), net(x))


@pytest.mark.parametrize(
    ("net", "signs", "message"),
    [
        (PSiLONNet(4, 1, width=3, depth=1), [1, 0, 1], "for each of its 4 inputs"),
        (PSiLONNet(4, 1, width=3, depth=1), [1, 0, 2, 0], r"Got \[1, 0, 2, 0\]"),
        (PSiLONNet(4, 2, width=3, depth=1), [1, 0, 1, 0], "one output"),
        (nn.Sequential(nn.ReLU()), [1], "without any"),
    ],
)
def test_what_has_no_sign_is_refused(net, signs, message):
    with pytest.raises(ValueError, match=message):
        MonotoneNet(net, signs)


def test_networks_whose_layers_do_not_tell_what_they_compute_are_refused():
    with pytest.raises(TypeError, match="Softplus"):
        MonotoneNet(nn.Sequential(nn.Linear(2, 2), nn.Softplus(), nn.Linear(2, 1)), [1, 0])
