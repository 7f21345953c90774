import pytest
import torch

from psilonnet.certify import input_moves, local_moves
from psilonnet.deploy import CompactNet, compact_parts
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainNet, PSiLONNet, PSiLONResNet
from psilonnet.training import live_widths, stack_members


def pruned(kind, seed, scale=40.0):
    """Return a random net after pruning: large rows leave few weights."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"width": 24, "depth": 3, "generator": generator}
    if kind == "resnet":
        net = PSiLONResNet(8, 2, **shape)
    elif kind == "knots":
        edges = torch.randn(3, 8, generator=generator).sort(dim=0).values
        net = PSiLONNet(8, 2, edges=edges, **shape)
    else:
        net = PSiLONNet(8, 2, activation=kind, **shape)
    with torch.no_grad():
        for layer in net.layers:
            noise = torch.randn(layer.direction.shape, generator=generator)
            layer.direction.copy_(noise * scale / noise.abs().sum(dim=-1, keepdim=True) * 4)
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator))
            layer.length.fill_(0.7)
    net.set_prune_mix(1.0)
    return net


@pytest.mark.parametrize("kind", ["relu", "crelu", "knots", "resnet"])
@pytest.mark.parametrize("seed", range(8))
def test_compact_net_is_smaller_and_the_same(kind, seed):
    net = pruned(kind, seed)
    compact, plain = CompactNet(net), PlainNet(net)
    generator = torch.Generator().manual_seed(seed)
    x = 3 * torch.randn(50, 8, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(compact(x), plain(x)[0], rtol=1e-9, atol=1e-12)
    assert compact.widths[-1] == 2
    assert all(a <= b for a, b in zip(compact.widths, live_widths(net), strict=True))
    if kind != "resnet":
        assert sum(compact.widths) < 8 + 3 * 24 + 2
    # The bounds of the inputs that are left are those of the whole net; the others move nothing.
    one = torch.eye(2, dtype=torch.float64)
    whole = input_moves(plain, one)
    torch.testing.assert_close(
        whole[:, compact.inputs], input_moves(compact.plain, one), rtol=1e-9, atol=1e-12
    )
    gone = torch.ones(8, dtype=torch.bool)
    gone[compact.inputs] = False
    assert whole[:, gone].abs().sum() <= 1e-12
    radius = torch.full_like(x, 0.2)
    asked = one.expand(50, 2, 2)
    torch.testing.assert_close(
        local_moves(compact.plain, x[:, compact.inputs], radius[:, compact.inputs], asked),
        local_moves(plain, x, radius, asked),
        rtol=1e-6,
        atol=1e-9,
    )


def test_net_that_is_not_pruned_stays_as_it_is():
    net = PSiLONNet(5, 1, width=16, depth=2)
    assert CompactNet(net).widths == [5, 16, 16, 1]


def test_constant_net_still_knows_its_rows():
    net = PSiLONNet(5, 1, width=16, depth=2)
    with torch.no_grad():
        for layer in net.layers:
            layer.length.zero_()
            layer.bias.fill_(2.0)
    compact = CompactNet(net)
    assert compact(torch.zeros(3, 5)).tolist() == [[2.0]] * 3


def test_each_member_is_compacted_by_itself():
    nets = [pruned("crelu", seed) for seed in range(3)]
    population = stack_members(nets)
    population.set_prune_mix(1.0)
    x = torch.randn(20, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for member, net in enumerate(nets):
        live = CompactNet(population, member)
        assert live.widths == CompactNet(net).widths
        torch.testing.assert_close(live(x), PlainNet(net)(x)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["relu", "crelu", "knots", "resnet"])
def test_live_parts_are_the_part_in_numbers_of_float32(kind):
    nets = [pruned(kind, seed) for seed in range(3)]
    population = stack_members(nets)
    population.set_prune_mix(1.0)
    weight = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    columns = ColumnMap.of("log_tails", torch.arange(8) % 3 != 0, torch.linspace(-1, 1, 8))
    part = Part(PlainNet(population), weight, columns, torch.arange(1, 9))
    live = compact_parts(part)
    assert [p.members for p in live] == [1, 1, 1]
    assert torch.cat([p.weight for p in live]).equal(weight)
    x = 3 * torch.randn(40, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    both = AveragedNet([part], 9)(x), AveragedNet(live, 9)(x)
    torch.testing.assert_close(*both, rtol=1e-5, atol=1e-6)
    for net, own in zip(nets, live, strict=True):
        assert own.inputs.equal(CompactNet(net).inputs + 1)
        assert own.columns.center.equal(columns.center[own.inputs - 1])
        assert own.columns.bent.equal(columns.bent[own.inputs - 1])
        for layer in own.net.layers:
            for tensor in (
                layer.weight,
                layer.bias,
                *([] if layer.edges is None else [layer.edges]),
            ):
                assert tensor.dtype == torch.float64
                assert tensor.is_contiguous()
                assert tensor.float().double().equal(tensor)
    again = [same for own in live for same in compact_parts(own)]
    assert AveragedNet(again, 9)(x).equal(both[1])  # nothing is left to do, or to round
