"""Matrices that are remembered are those of the network as it is now."""

import copy
import pickle

import pytest
import torch
from torch import nn

from nn.random_nets import scramble_
from psilonnet.deploy import CompactNet
from psilonnet.nn import (
    CReLUBlock,
    CReLULinear,
    KnotLinear,
    Network,
    NormalizedLinear,
    PlainNet,
    PSiLONNet,
    ReLULinear,
    plain_net,
)

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(1))


def make_net(last=CReLULinear):
    net = Network(NormalizedLinear(3, 3), last(3, 3))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(
                torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
            )
    return net


def like(layer, other):
    """Give a layer the tensors of another one."""
    layer.load_state_dict(other.state_dict(), strict=False)
    return layer


def append(net):
    net.append(like(ReLULinear(3, 3), net[0]))


def append_the_same_again(net):
    net.append(net[1])


def shorten(net):
    del net[1]


def add_the_identity(net):
    net[1] = like(CReLUBlock(3), net[1])


def split_elsewhere(net):
    net[1] = like(KnotLinear(torch.full((1, 3), 0.5), 3), net[1])


def activate(net):
    net[0] = like(ReLULinear(3, 3), net[0])


def normalize_otherwise(net):
    net[1].normalization = "l2"


def take_the_bias_away(net):
    net[1].bias = None


def swap(net):
    net[0], net[1] = net[1], net[0]


CHANGES = [
    append,
    append_the_same_again,
    shorten,
    add_the_identity,
    split_elsewhere,
    activate,
    normalize_otherwise,
    take_the_bias_away,
    swap,
]


@pytest.mark.parametrize("change", CHANGES)
def test_plain_matrices_are_made_again_when_a_layer_changes(change):
    net = make_net()
    before = plain_net(net)(X)
    CompactNet(net)
    change(net)
    after = plain_net(net)(X)
    assert after.shape != before.shape or not torch.allclose(after, before)
    torch.testing.assert_close(after[0].float(), net(X))
    torch.testing.assert_close(CompactNet(net)(X).float(), net(X))
    assert plain_net(net) is plain_net(net)


def test_plain_matrices_of_torch_nets_are_made_again_when_a_layer_changes():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    plain_net(net)
    net.insert(1, nn.ReLU())
    torch.testing.assert_close(plain_net(net)(X)[0].float(), net(X))
    assert plain_net(net) is plain_net(net)


def test_plain_matrices_are_made_again_when_a_tensor_changes():
    net = scramble_(PSiLONNet(4, 2, width=8, depth=2), torch.Generator().manual_seed(0))
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    made = plain_net(net)
    assert plain_net(net) is made
    torch.testing.assert_close(made(x)[0].float(), net(x))
    with torch.no_grad():
        net.layers[0].direction.mul_(torch.linspace(0.5, 2, 4))
    torch.testing.assert_close(plain_net(net)(x)[0].float(), net(x))
    net.set_prune_mix(1.0)
    torch.testing.assert_close(plain_net(net)(x)[0].float(), net(x))
    net.layers[0].direction.data.mul_(torch.linspace(2, 0.5, 4))
    torch.testing.assert_close(plain_net(net)(x)[0].float(), net(x))
    net(x).sum().backward()
    torch.optim.Adam(net.parameters(), fused=True).step()  # autograd does not count this change
    torch.testing.assert_close(plain_net(net)(x)[0].float(), net(x))
    net.load_state_dict(copy.deepcopy(net).state_dict())
    assert plain_net(pickle.loads(pickle.dumps(net))) is not plain_net(net)


def test_plain_matrices_are_copies():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2).double())
    plain = PlainNet(net)
    before = plain(torch.ones(1, 3))
    torch.nn.init.zeros_(net[0].weight)
    assert plain(torch.ones(1, 3)).equal(before)


def test_members_that_share_their_edges_compute_what_members_with_edges_of_their_own_do():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 3, generator=generator)
    edges = torch.randn(4, 3, generator=generator).sort(0).values
    settings = {"members": (2,), "generator": generator}
    net = Network(KnotLinear(edges, 5, **settings), ReLULinear(5, 1, **settings))
    apart = copy.deepcopy(net)
    apart.layers[0].edges = torch.stack([edges, edges + 1])
    assert PlainNet(net).layers[0].with_shared_edges().edges.shape == (1, 4, 3)
    assert PlainNet(apart).layers[0].with_shared_edges().edges.shape == (2, 4, 3)
    for own in (net, apart):
        torch.testing.assert_close(PlainNet(own)(x).float(), own(x))
