import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn

from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainNet, PSiLONNet
from psilonnet.training import stack_members


def two_parts():
    """Return a part of two networks that reads all of four columns, and one that reads two."""
    torch.manual_seed(0)
    wide = PlainNet(stack_members([PSiLONNet(4, 2, width=8, depth=2) for _ in range(2)]))
    small = PlainNet(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))
    bent = torch.tensor([True, False, True, True])
    some = torch.tensor([1, 2])
    return (
        Part(wide, torch.tensor([0.5, 0.2]).double(), ColumnMap.identity(4), torch.arange(4)),
        Part(small, torch.tensor([0.3]).double(), ColumnMap.of("clipped", bent).at(some), some),
    )


def test_an_average_is_the_weighted_sum_of_its_networks():
    first, second = two_parts()
    net = AveragedNet([first, second], 4)
    assert (net.members, net.outputs, net.columns) == (3, 2, 4)
    x = 5 * torch.randn(7, 4, dtype=torch.float64)
    seen = torch.stack([x[:, 1], x[:, 2] / torch.sqrt(1 + (x[:, 2] / 3) ** 2)], dim=1)
    one, two = first.net(x)
    expected = 0.5 * one + 0.2 * two + 0.3 * second.net(seen)[0]
    torch.testing.assert_close(net(x), expected, rtol=1e-6, atol=1e-6)
    assert net(x).dtype == torch.float64


def test_averages_are_averaged():
    first, second = two_parts()
    net, x = AveragedNet([first, second], 4), torch.randn(3, 4)
    plain = AveragedNet.of(PSiLONNet(4, 2, width=4, depth=1))
    both = AveragedNet(net.weighed(0.25) + plain.weighed(0.75), 4)
    torch.testing.assert_close(both(x), 0.25 * net(x) + 0.75 * plain(x))


@pytest.mark.parametrize("kind", ["torch", "psilonnet", "population"])
def test_networks_are_averages_of_themselves(kind):
    torch.manual_seed(1)
    single = PSiLONNet(3, 2, width=5, depth=1)
    given = {
        "torch": nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)),
        "psilonnet": single,
        "population": stack_members([single, PSiLONNet(3, 2, width=5, depth=1)]),
    }[kind]
    x = torch.randn(6, 3)
    net = AveragedNet.of(given)
    outputs = given(x).detach().double()
    expected = outputs.mean(dim=0) if kind == "population" else outputs
    torch.testing.assert_close(net(x), expected, rtol=1e-5, atol=1e-5)
    assert AveragedNet.of(net) is net
    torch.testing.assert_close(AveragedNet.of(PlainNet(given))(x), net(x))


def test_columns_that_are_not_in_order_are_refused():
    part = two_parts()[1]
    for wrong in ([2, 1], [1, 1]):
        with pytest.raises(ValueError, match="in increasing order"):
            replace(part, inputs=torch.tensor(wrong))


def test_a_copy_computes_the_same():
    net, x = AveragedNet(two_parts(), 4), torch.randn(9, 4)
    assert torch.equal(pickle.loads(pickle.dumps(net))(x), net(x))
