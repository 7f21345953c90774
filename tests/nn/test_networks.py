import copy
import pickle

import pytest
import torch
from torch import nn

from psilonnet.functional import closed_form, path_norm
from psilonnet.nn import (
    VARIANTS,
    CReLUBlock,
    CReLULinear,
    PlainNet,
    PSiLONNet,
    PSiLONResNet,
    fold,
    has_closed_form,
    make_net,
    path_norm_penalty,
    plain_net,
    shared_weights,
    weight_decay_penalty,
)


def scramble_(net, generator):
    """Give a network random parameters with non-zero lengths."""
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.copy_(torch.randn(layer.direction.shape, generator=generator))
            if layer.length is not None:
                scale = 1 / len(net.layers) if layer.residual else 1.5
                layer.length.copy_(
                    scale * (0.5 + torch.rand(layer.length.shape, generator=generator))
                )
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator))
            if layer.normalization == "ball":
                layer.direction.div_(1 + layer.direction.abs().amax(-2).sum(-1)[..., None, None])
    return net


def make_edges(pieces, columns, generator):
    return torch.randn(pieces - 1, columns, generator=generator).sort(dim=0).values


def make_random_net(kind, depth, generator, pieces=1, width=16):
    edges = None if pieces == 1 else make_edges(pieces, 6, generator)
    if kind == "residual":
        net = PSiLONResNet(6, 3, width=width, depth=depth, edges=edges)
    else:
        net = PSiLONNet(6, 3, width=width, depth=depth, activation=kind, edges=edges)
    return scramble_(net.double(), generator)


@pytest.mark.parametrize("kind", ["relu", "crelu", "residual"])
@pytest.mark.parametrize("depth", [1, 3, 12])
@pytest.mark.parametrize("pieces", [1, 2, 9])
@pytest.mark.parametrize("mix", [0.0, 1.0])
def test_closed_form_is_the_improved_bound_of_the_weights(kind, depth, pieces, mix, generator):
    net = make_random_net(kind, depth, generator, pieces)
    net.set_prune_mix(mix)
    assert has_closed_form(net)
    improved = path_norm(net.weights(), residual=net.residual, bound="improved")
    torch.testing.assert_close(path_norm_penalty(net), improved, rtol=1e-10, atol=0)
    torch.testing.assert_close(
        closed_form(net.lengths(), residual=net.residual), improved, rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradient_reaches_every_parameter(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4), generator)
    x = torch.randn(64, 6, generator=generator)
    net(x).square().mean().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def direction_is_free(layer, first, regularizer):
    """Whether normalisation already fixes what the penalty sees of a direction."""
    if regularizer == "weight_decay":
        return layer.normalization == "l2" and layer.pieces == 1
    return layer.normalization == "l1" and first


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_reaches_what_it_controls(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4), generator)
    VARIANTS[variant].penalty(net).backward()
    for k, layer in enumerate(net.layers):
        if layer.length is not None:
            assert layer.length.grad.abs().sum() > 1e-3
        if has_closed_form(net):
            assert layer.direction.grad is None
        elif not direction_is_free(layer, k == 0, VARIANTS[variant].regularizer):
            assert layer.direction.grad.abs().sum() > 1e-3
        assert layer.bias.grad is None


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_is_the_same_with_shared_weights(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4).double(), generator)
    x = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    outside = (net(x), VARIANTS[variant].penalty(net))
    with shared_weights(net):
        inside = (net(x), VARIANTS[variant].penalty(net))
    torch.testing.assert_close(inside, outside, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_penalty_of_members_is_that_of_each(variant, generator):
    net = scramble_(make_net(variant, 6, 3, width=12, depth=4, members=(3,)).double(), generator)
    single = make_net(variant, 6, 3, width=12, depth=4).double()
    together = VARIANTS[variant].penalty(net)
    assert together.shape == (3,)
    for m in range(3):
        single.load_state_dict({k: v[m] if v.dim() else v for k, v in net.state_dict().items()})
        torch.testing.assert_close(VARIANTS[variant].penalty(single), together[m])


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


def test_variants_are_the_ten_of_the_paper():
    assert len(VARIANTS) == 10
    assert sum(row.network is PSiLONResNet for row in VARIANTS.values()) == 7


def test_variant_unknown_is_refused():
    with pytest.raises(ValueError, match=r"'variant' must be one of .* Got 'Q-Net'"):
        make_net("Q-Net", 3, 1)


@pytest.mark.parametrize("depth", [1, 3, 50])
def test_residual_net_is_affine_at_initialisation(depth, generator):
    net = PSiLONResNet(6, 3, width=16, depth=depth, generator=generator).double()
    a, b = torch.randn(2, 40, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(net((a + b) / 2), (net(a) + net(b)) / 2)
    # ... also away from it, as long as the pieces are equal.
    for layer in net.layers:
        layer.length.data.fill_(0.1)
    torch.testing.assert_close(net((a + b) / 2), (net(a) + net(b)) / 2)


@pytest.mark.parametrize("pieces", [2, 8])
def test_net_with_equal_pieces_is_the_plain_net(pieces, generator):
    plain = scramble_(PSiLONNet(6, 3, width=16, depth=3).double(), generator)
    split = PSiLONNet(6, 3, width=16, depth=3, edges=make_edges(pieces, 6, generator)).double()
    state = plain.state_dict()
    state["0.direction"] = state["0.direction"].expand(-1, pieces, -1).clone()
    split.load_state_dict({**state, "0.edges": split.layers[0].edges})
    x = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(split(x), plain(x))


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


@pytest.mark.parametrize("bound", ["original", "improved", "merged"])
def test_penalty_of_a_plain_sequential_is_its_path_norm(bound, generator):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    a, b, c = (net[i].weight.detach().abs() for i in (0, 2, 4))
    torch.testing.assert_close(path_norm_penalty(net, bound=bound), (c @ b @ a).sum())


def test_penalty_refuses_what_the_theorem_does_not_cover():
    net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 2))
    with pytest.raises(TypeError, match="Got GELU instead"):
        path_norm_penalty(net)


def test_weight_decay_is_the_sum_of_squares(generator):
    net = scramble_(make_net("S-ResNet", 6, 3, width=8, depth=3), generator)
    expected = sum(w.square().sum() for w in net.weights())
    torch.testing.assert_close(weight_decay_penalty(net), expected)


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


def test_blocks_are_layers_of_plain_pytorch(generator):
    net = nn.Sequential(nn.Linear(3, 8), CReLUBlock(8), CReLULinear(8, 1))
    assert net(torch.zeros(2, 3)).shape == (2, 1)


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


def test_settings_of_a_variant_are_not_overruled():
    with pytest.raises(ValueError, match="'P-Net' sets length and normalization itself"):
        make_net("P-Net", 3, 1, width=4, depth=1, length="none", normalization="l2")
