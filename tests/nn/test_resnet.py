import pytest
import torch
from torch import nn

from psilonnet.nn import (
    CReLUBlock,
    CReLULinear,
    PSiLONResNet,
)


@pytest.mark.parametrize("depth", [1, 3, 50])
def test_residual_net_is_affine_at_initialisation(depth, generator):
    net = PSiLONResNet(6, 3, width=16, depth=depth, generator=generator).double()
    a, b = torch.randn(2, 40, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(net((a + b) / 2), (net(a) + net(b)) / 2)
    # ... also away from it, as long as the pieces are equal.
    for layer in net.layers:
        layer.length.data.fill_(0.1)
    torch.testing.assert_close(net((a + b) / 2), (net(a) + net(b)) / 2)


def test_blocks_are_layers_of_plain_pytorch(generator):
    net = nn.Sequential(nn.Linear(3, 8), CReLUBlock(8), CReLULinear(8, 1))
    assert net(torch.zeros(2, 3)).shape == (2, 1)
