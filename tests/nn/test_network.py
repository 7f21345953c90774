import copy
import pickle

import pytest
import torch

from nn.random_nets import make_random_net, scramble_
from psilonnet.nn import (
    VARIANTS,
    PSiLONNet,
    PSiLONResNet,
    make_net,
    shared_weights,
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_network_survives_copies(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4), generator)
    x = torch.randn(8, 6, generator=generator)
    loaded = make_net(variant, 6, 3, width=12, depth=4)
    loaded.load_state_dict(net.state_dict())
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), loaded):
        assert other(x).equal(net(x))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("members", [(), (3,), (2, 3)])
def test_network_takes_a_single_row(variant, members, generator):
    net = make_net(variant, 6, 3, width=12, depth=4, members=members).double()
    scramble_(net, generator)
    x = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    assert net(x[0]).shape == (*members, 3)
    torch.testing.assert_close(net(x[0]), net(x)[..., 0, :], rtol=1e-12, atol=1e-12)


def test_sparsity_of_a_net_is_the_mean_over_weight_vectors(generator):
    net = make_random_net("residual", 4, generator)
    net.set_prune_mix(1.0)
    vectors = [row for w in net.weights() for row in w.reshape(-1, w.shape[-1])]
    expected = sum((v == 0).double().mean() for v in vectors) / len(vectors)
    torch.testing.assert_close(net.exact_sparsity(), expected)
    assert net.exact_sparsity() > 0.1
    assert net.near_sparsity() >= net.exact_sparsity()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PSiLONNet(3, 1, depth=0), "'depth' of PSiLONNet must be at least 1. Got 0"),
        (lambda: PSiLONNet(3, 1, activation="gelu"), r"one of \['crelu', 'relu'\]. Got 'gelu'"),
        (lambda: PSiLONResNet(3, 1, edges=torch.zeros(2, 4)), "each of the 3 inputs. Got 4"),
    ],
)
def test_network_refuses_with_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("variant", "mix"),
    [("P-Net", 0.0), ("P-ResNet", 0.0), ("P-ResNet", 0.5), ("P-ResNet", 1.0)]
    + [(name, None) for name in ("S-Net", "S-Net without WN", "L2-IB-ResNet", "Pj-ResNet")],
)
def test_network_exports(variant, mix, generator):
    net = scramble_(make_net(variant, 6, 3, width=8, depth=3), generator)
    if mix is not None:
        net.set_prune_mix(mix)
    x = torch.randn(5, 6, generator=generator)
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: rows},))
    other = torch.randn(9, 6, generator=generator)
    torch.testing.assert_close(program.module()(other), net(other))


@pytest.mark.parametrize("variant", ["P-Net", "P-ResNet", "L1-IB-ResNet"])
def test_network_compiles_whole(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=8, depth=3), generator)
    x = torch.randn(5, 6, generator=generator)

    def loss(net, x):
        return net(x).square().mean() + 0.1 * VARIANTS[variant].penalty(net)

    torch.compile(loss, fullgraph=True, backend="aot_eager")(net, x).backward()
    compiled = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    loss(net, x).backward()
    for fast, plain in zip(compiled, net.parameters(), strict=True):
        torch.testing.assert_close(fast, plain.grad)


def test_network_works_under_torch_func(generator):
    net = scramble_(PSiLONResNet(6, 3, width=8, depth=3, members=(4,)).double(), generator)
    x = torch.randn(5, 6, generator=generator, dtype=torch.float64)
    net(x).square().mean(dim=(-2, -1)).sum().backward()

    single = PSiLONResNet(6, 3, width=8, depth=3).double()
    buffers = dict(single.named_buffers())

    def loss(parameters):
        call = torch.func.functional_call(single, (parameters, buffers), (x,))
        return call.square().mean()

    stacked = {k: p.detach() for k, p in net.named_parameters()}
    gradients = torch.func.vmap(torch.func.grad(loss))(stacked)
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad)


@pytest.mark.long  # a compilation takes half a minute
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler imports torch.jit
@pytest.mark.parametrize("variant", ["P-ResNet", "S-Net"])
def test_compiled_network_takes_the_same_steps(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=3).double(), generator)
    twin = copy.deepcopy(net)
    twin.compiled = True
    x = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    for each in (net, twin):
        with shared_weights(each):  # the penalty uses the weights of the forward pass
            (each(x).square().mean() + VARIANTS[variant].penalty(each)).backward()
    for ours, theirs in zip(twin.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    torch.testing.assert_close(pickle.loads(pickle.dumps(twin))(x), net(x))
    if variant == "P-ResNet":
        twin.set_prune_mix(1.0)  # pruned layers make their weights themselves
        net.set_prune_mix(1.0)
        torch.testing.assert_close(twin(x), net(x))
