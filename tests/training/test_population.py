import pytest
import torch

from psilonnet.nn import VARIANTS, PlainNet, PSiLONNet, PSiLONResNet, make_net, path_norm_penalty
from psilonnet.training import (
    PopulationTooLargeError,
    join_populations,
    members_of,
    memory_needed,
    repeat_member,
    stack_members,
    take_members,
    weigh_members,
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


@pytest.mark.parametrize("prune_mix", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", [PSiLONNet, PSiLONResNet])
def test_networks_with_and_without_knots_are_one_population(kind, prune_mix, generator):
    edges = torch.randn(3, 6, generator=generator).sort(dim=-2).values
    sizes = {"width": 10, "depth": 2, "generator": generator}
    plain, split = (
        stack_members([kind(6, 2, edges=own, **sizes) for _ in range(2)]) for own in (None, edges)
    )
    for net in (plain, split):
        with torch.no_grad():
            net.layers[0].direction.mul_(30.0)
            net.layers[1].length.fill_(0.5)
        net.set_prune_mix(prune_mix)
    before = torch.random.get_rng_state()
    joined = join_populations([plain, split, plain])
    assert torch.random.get_rng_state().equal(before)  # nothing is drawn
    x = 5 * torch.randn(7, 6, generator=generator)
    torch.testing.assert_close(joined(x), torch.cat([plain(x), split(x), plain(x)]))
    bounds = [path_norm_penalty(net) for net in (plain, split, plain)]
    torch.testing.assert_close(path_norm_penalty(joined), torch.cat(bounds))
    sparsities = [net.exact_sparsity() for net in (plain, split, plain)]
    torch.testing.assert_close(joined.exact_sparsity(), torch.cat(sparsities))
    matrices = PlainNet(joined)
    for member in range(6):  # taken out, a member without knots has none
        alone = matrices.member(member)
        assert (alone.layers[0].split == "knots") == (member in (2, 3))
        torch.testing.assert_close(alone(x)[0], matrices(x)[member])


def test_weights_of_an_average_go_into_the_last_layer(generator):
    population = random_net("P-Net", generator, members=(3,))
    weights = [0.5, 0.3, 0.2]
    weighted = weigh_members(population, weights)
    x = torch.randn(5, 6, generator=generator)
    share = torch.tensor(weights)
    expected = (share[:, None, None] * population(x)).sum(dim=0)
    torch.testing.assert_close(weighted(x).mean(dim=0), expected)
    bound = (share * path_norm_penalty(population)).sum()
    torch.testing.assert_close(path_norm_penalty(weighted).mean(), bound)
    with pytest.raises(ValueError, match="without lengths"):
        weigh_members(random_net("S-Net without WN", generator, members=(3,)), weights)


def pruned(net):
    net.set_prune_mix(1.0)
    return net


@pytest.mark.parametrize(
    "other",
    [
        lambda generator: pruned(random_net("P-Net", generator)),
        lambda generator: random_net("P-Net", generator).double(),
        lambda generator: PSiLONNet(6, 2, width=10, depth=3, normalization="ball"),
    ],
)
def test_networks_that_compute_otherwise_do_not_share_a_population(other, generator):
    nets = [random_net("P-Net", generator), other(generator)]
    with pytest.raises(ValueError, match="of one population must have the same layers"):
        stack_members(nets)
    with pytest.raises(ValueError, match="of one population must have the same layers"):
        join_populations([stack_members([net]) for net in nets])


def test_weights_are_one_for_each_member(generator):
    with pytest.raises(ValueError, match=r"one weight for each of the 3 members. Got 1"):
        weigh_members(random_net("P-Net", generator, members=(3,)), [1.0])
