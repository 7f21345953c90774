import pytest
import torch

from nn.random_nets import scramble_
from psilonnet.nn import (
    VARIANTS,
    PSiLONResNet,
    make_net,
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradient_reaches_every_parameter(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4), generator)
    x = torch.randn(64, 6, generator=generator)
    net(x).square().mean().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_variants_are_the_ten_of_the_paper():
    assert len(VARIANTS) == 10
    assert sum(row.network is PSiLONResNet for row in VARIANTS.values()) == 7


def test_variant_unknown_is_refused():
    with pytest.raises(ValueError, match=r"'variant' must be one of .* Got 'Q-Net'"):
        make_net("Q-Net", 3, 1)


def test_settings_of_a_variant_are_not_overruled():
    with pytest.raises(ValueError, match="'P-Net' sets length and normalization itself"):
        make_net("P-Net", 3, 1, width=4, depth=1, length="none", normalization="l2")
