import pytest
import torch
from torch import nn

from nn.random_nets import make_random_net
from psilonnet.nn import (
    PlainNet,
    PSiLONNet,
    fold,
)


def relative_error(folded, net, x):
    expected = net(x)
    return ((folded(x) - expected).abs().max() / expected.abs().max()).item()


@pytest.mark.parametrize(
    ("kind", "depth"),
    [(kind, depth) for kind in ("relu", "crelu", "residual") for depth in (1, 2, 10)]
    + [("residual", 50)],
)
@pytest.mark.parametrize("pieces", [1, 2, 16])
def test_fold_keeps_the_outputs(kind, depth, pieces, generator):
    net = make_random_net(kind, depth, generator, pieces)
    x = torch.randn(100, 6, generator=generator, dtype=torch.float64)
    assert relative_error(fold(net), net, x) < 1e-12
    assert relative_error(fold(PlainNet(net)), net, x) < 1e-12
    net = net.float()
    folded = fold(net)
    assert relative_error(folded, net, x.float()) < 1e-5
    assert all(type(module) in (nn.Linear, nn.ReLU) for module in folded)


def test_fold_keeps_a_pruned_net_and_a_net_without_biases(generator):
    net = make_random_net("residual", 5, generator, pieces=4)
    net.set_prune_mix(1.0)
    x = torch.randn(100, 6, generator=generator, dtype=torch.float64)
    assert relative_error(fold(net), net, x) < 1e-12
    bare = PSiLONNet(6, 3, width=8, depth=2, bias=False, generator=generator)
    assert relative_error(fold(bare), bare, x.float()) < 1e-5


def test_fold_refuses_members():
    with pytest.raises(ValueError, match=r"Got members \(3,\)"):
        fold(PSiLONNet(6, 3, width=8, depth=2, members=(3,)))
    with pytest.raises(ValueError, match=r"Got members \(3,\)"):
        fold(PlainNet(PSiLONNet(6, 3, width=8, depth=2, members=(3,))))
