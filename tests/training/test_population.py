import pytest
import torch

from psilonnet.nn import VARIANTS, PSiLONNet, PSiLONResNet, make_net
from psilonnet.training import (
    PopulationTooLargeError,
    join_populations,
    members_of,
    memory_needed,
    repeat_member,
    stack_members,
    take_members,
)
from psilonnet.training.population import _memory_available, check_memory


def random_net(variant, generator, **settings):
    net = make_net(variant, 6, 2, width=10, depth=3, **settings)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return net


@pytest.mark.parametrize("variant", VARIANTS)
def test_member_comes_out_as_an_ordinary_network(variant, generator):
    nets = [random_net(variant, generator) for _ in range(4)]
    population = stack_members(nets)
    x = torch.randn(5, 6, generator=generator)
    assert members_of(population) == 4
    for m, net in enumerate(nets):
        torch.testing.assert_close(population(x)[m], net(x), rtol=1e-5, atol=1e-6)
        alone = take_members(population, m)
        assert alone(x).equal(net(x))
        assert [p.shape for p in alone.parameters()] == [p.shape for p in net.parameters()]


def test_taken_members_share_no_memory(generator):
    population = random_net("P-Net", generator, members=(4,))
    before = [p.clone() for p in population.parameters()]
    taken = take_members(population, torch.tensor([1, 3]))
    with torch.no_grad():
        for parameter in taken.parameters():
            parameter.zero_()
    for parameter, old in zip(population.parameters(), before, strict=True):
        assert parameter.equal(old)


@pytest.mark.parametrize("own_edges", [False, True])
def test_edges_are_taken_with_their_members(own_edges, generator):
    edges = torch.randn(3, 2, 6, generator=generator).sort(dim=-2).values
    edges = edges if own_edges else edges[0]
    population = PSiLONResNet(6, 2, width=10, depth=2, edges=edges, members=(3,))
    x = torch.randn(5, 6, generator=generator)
    kept = take_members(population, torch.tensor([0, 2]))
    torch.testing.assert_close(kept(x), population(x)[[0, 2]])
    torch.testing.assert_close(take_members(population, 2)(x), population(x)[2])


def test_pruning_stage_is_taken_with_the_members(generator):
    population = random_net("P-Net", generator, members=(3,))
    population.set_prune_mix(1.0)
    x = torch.randn(5, 6, generator=generator)
    torch.testing.assert_close(take_members(population, 1)(x), population(x)[1])


def test_repeated_member_is_one_initialisation():
    population = repeat_member(PSiLONNet(6, 1, width=8, depth=2), 3)
    assert population.layers[0].direction[0].equal(population.layers[0].direction[2])


def test_network_without_members_is_no_population():
    with pytest.raises(ValueError, match=r"exactly one member axis"):
        members_of(PSiLONNet(6, 1, width=8, depth=2))


def test_too_large_a_population_is_refused_with_number_and_remedy():
    population = repeat_member(PSiLONNet(24, 1, width=64, depth=2), 10)
    needed = memory_needed(population, 400)
    check_memory(population, 400, available=needed)
    with pytest.raises(PopulationTooLargeError, match=r"10 members needs about .* at most 5 memb"):
        check_memory(population, 400, available=needed // 2)


def test_available_memory_is_known_here():
    assert _memory_available() > 2**20


def test_populations_are_joined_with_their_own_knots(generator):
    sizes = {"width": 10, "depth": 2, "generator": generator, "members": (2,)}
    nets = [
        PSiLONNet(6, 2, edges=torch.randn(3, 6, generator=generator).sort(dim=-2).values, **sizes)
        for _ in range(2)
    ]
    joined = join_populations(nets)
    x = 5 * torch.randn(7, 6, generator=generator)
    torch.testing.assert_close(joined(x), torch.cat([net(x) for net in nets]))


def pruned(net):
    net.set_prune_mix(1.0)
    return net


@pytest.mark.parametrize(
    "other",
    [
        lambda generator: pruned(random_net("P-Net", generator)),
        lambda generator: random_net("P-Net", generator).double(),
        lambda generator: PSiLONNet(6, 2, width=10, depth=3, normalization="ball"),
        lambda generator: PSiLONNet(6, 2, width=10, depth=3, edges=torch.zeros(1, 6)),
    ],
)
def test_networks_that_compute_otherwise_do_not_share_a_population(other, generator):
    nets = [random_net("P-Net", generator), other(generator)]
    with pytest.raises(ValueError, match="of one population must have the same layers"):
        stack_members(nets)
    with pytest.raises(ValueError, match="of one population must have the same layers"):
        join_populations([stack_members([net]) for net in nets])
