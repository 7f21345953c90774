import copy
import io
import pickle

import pytest
import torch

from psilonnet.functional import mixed_weight, normalized_weight, project_sphere, row_norm
from psilonnet.nn import (
    CReLUBlock,
    CReLULinear,
    KnotLinear,
    NormalizedLinear,
    ReLULinear,
    orthogonal_,
    shared_weights,
)

NORMALIZATIONS = ["l1", "l2", "ball", "none"]
LENGTHS = ["shared", "per_row", "none"]


def edges(pieces, columns, generator):
    return torch.randn(pieces - 1, columns, generator=generator).sort(dim=0).values


def all_layers(generator, **settings):
    return [
        NormalizedLinear(5, 4, 3, generator=generator, **settings),
        ReLULinear(5, 4, generator=generator, **settings),
        CReLULinear(5, 4, generator=generator, **settings),
        CReLUBlock(5, generator=generator, **settings),
        KnotLinear(edges(6, 5, generator), 4, generator=generator, **settings),
    ]


def random_(layer, generator):
    """Replace the parameters of a layer by random ones, away from ties."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return layer


def rows_for(layer, generator, batch=7):
    width = layer.direction.shape[-1] * (layer.pieces if type(layer) is NormalizedLinear else 1)
    return torch.randn(batch, width, generator=generator, dtype=layer.direction.dtype)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("length", LENGTHS)
def test_layer_output_is_weight_times_pieces(normalization, length, generator):
    layer = NormalizedLinear(
        5, 4, 3, normalization=normalization, length=length, generator=generator
    )
    random_(layer.double(), generator)
    x = rows_for(layer, generator)
    expected = torch.einsum("oti,bti->bo", layer.weight, x.view(-1, 3, 5)) + layer.bias
    torch.testing.assert_close(layer(x), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("members", [(3,), (2, 3)])
def test_layer_member_is_a_layer_of_its_own(index, members, generator):
    layer = random_(all_layers(generator, members=members)[index].double(), generator)
    x = rows_for(layer, generator)
    together = layer(x)
    assert together.shape[: len(members)] == members
    alone = all_layers(generator)[index].double()
    for position in torch.cartesian_prod(*(torch.arange(m) for m in members)).view(
        -1, len(members)
    ):
        at = tuple(position.tolist())
        state = {
            k: v[at] if v.dim() > 0 and k != "edges" else v for k, v in layer.state_dict().items()
        }
        if "edges" in state:
            state["edges"] = layer.edges
            alone.edges = layer.edges
        alone.load_state_dict(state)
        torch.testing.assert_close(alone(x), together[at], rtol=1e-12, atol=1e-12)


def test_layer_members_may_have_rows_of_their_own(generator):
    layer = random_(CReLULinear(5, 4, members=(3,)).double(), generator)
    x = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(layer(x)[1], layer(x[1])[1])


def test_knot_layer_members_may_have_edges_of_their_own(generator):
    own = torch.stack([edges(4, 5, generator) for _ in range(3)])
    layer = random_(KnotLinear(own, 2, members=(3,)), generator)
    x = torch.randn(7, 5, generator=generator)
    single = KnotLinear(own[1], 2)
    single.load_state_dict({k: v if v.dim() == 0 else v[1] for k, v in layer.state_dict().items()})
    torch.testing.assert_close(layer(x)[1], single(x))


def assert_takes_a_single_row(layer, x, members):
    """One row, without an axis for rows, gives one output of each member."""
    row = x[0].clone().requires_grad_()
    alone = layer(row)
    assert alone.shape == (*members, layer(x).shape[-1])
    torch.testing.assert_close(alone, layer(x)[..., 0, :], rtol=1e-12, atol=1e-12)
    rows = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(layer(rows)[..., 0, :].square().sum(), rows)
    (found,) = torch.autograd.grad(alone.square().sum(), row)
    torch.testing.assert_close(found, expected[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("members", [(), (1,), (4,), (2, 3)])
@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_layer_takes_a_single_row(index, members, mix, generator):
    layer = random_(all_layers(generator, members=members)[index].double(), generator)
    layer.set_prune_mix(mix)
    x = rows_for(layer, generator)
    assert_takes_a_single_row(layer, x, members)
    with shared_weights(layer):
        assert_takes_a_single_row(layer, x, members)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("bias", [True, False])
def test_layer_of_every_kind_of_weight_takes_a_single_row(normalization, length, bias, generator):
    layer = CReLULinear(
        5, 4, members=(3,), normalization=normalization, length=length, bias=bias
    ).double()
    random_(layer, generator)
    assert_takes_a_single_row(layer, rows_for(layer, generator), (3,))


@pytest.mark.parametrize("members", [(3,), (2, 3)])
def test_knot_layer_with_edges_of_members_takes_a_single_row(members, generator):
    own = torch.randn(*members, 3, 5, generator=generator).sort(dim=-2).values
    layer = random_(KnotLinear(own, 2, members=members).double(), generator)
    assert_takes_a_single_row(layer, rows_for(layer, generator), members)


@pytest.mark.parametrize("index", range(5))
def test_compiled_layer_takes_a_single_row(index, generator):
    layer = random_(all_layers(generator, members=(4,))[index].double(), generator)
    x = rows_for(layer, generator)
    torch.compiler.reset()
    whole = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(whole(x[0]), layer(x)[..., 0, :])


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_layer_rows_have_the_norm_of_their_length(pieces, generator):
    layer = random_(NormalizedLinear(6, 4, pieces, length="per_row").double(), generator)
    for mix in (0.0, 0.3, 1.0):
        layer.set_prune_mix(mix)
        torch.testing.assert_close(row_norm(layer.weight), layer.length.abs())


def test_layer_pruning_follows_eq_5(generator):
    layer = random_(NormalizedLinear(20, 4, 2), generator)
    v, g = layer.direction, layer.length
    torch.testing.assert_close(layer.weight, normalized_weight(v, g))
    layer.set_prune_mix(0.25)
    torch.testing.assert_close(layer.weight, mixed_weight(v, g, 0.25))
    layer.set_prune_mix(1.0)
    assert layer.weight.equal(g[..., None, None] * project_sphere(v))
    assert (layer.weight == 0).double().mean() > 0.5
    layer.set_prune_mix(0.0)
    torch.testing.assert_close(layer.weight, normalized_weight(v, g))


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_layer_state_dict_carries_the_pruning_stage(mix, generator):
    layer = random_(CReLULinear(6, 4), generator)
    layer.set_prune_mix(mix)
    fresh = CReLULinear(6, 4)
    fresh.load_state_dict(layer.state_dict())
    assert fresh.weight.equal(layer.weight)


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
def test_layer_survives_copies(index, mix, generator):
    layer = random_(all_layers(generator)[index], generator)
    layer.set_prune_mix(mix)
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    saved = copy.deepcopy(layer)
    saved.reset_parameters(generator)
    saved.load_state_dict(torch.load(buffer, weights_only=True))
    x = rows_for(layer, generator)
    for other in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer), saved):
        assert other(x).equal(layer(x))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: NormalizedLinear(3, 2, length="row"),
            "The 'length' parameter of NormalizedLinear must be one of 'shared', 'per_row', "
            "'none'. Got 'row' instead.",
        ),
        (
            lambda: CReLULinear(3, 2, normalization="L1"),
            "The 'normalization' parameter of CReLULinear must be one of .* Got 'L1' instead.",
        ),
        (lambda: NormalizedLinear(3, 2).set_prune_mix(1.5), "between 0 and 1. Got 1.5 instead."),
        (lambda: NormalizedLinear(3, 2, normalization="l2").set_prune_mix(0.5), "needs .*'l1'"),
        (lambda: KnotLinear(torch.tensor([[1.0], [0.0]]), 2), "finite and non-decreasing"),
        (lambda: KnotLinear(torch.tensor([[torch.inf]]), 2), "finite and non-decreasing"),
        (lambda: KnotLinear(torch.zeros(3), 2), r"shape \(pieces - 1, in\)"),
    ],
)
def test_layer_refuses_with_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_shape_without_numbers_draws_nothing(monkeypatch):
    monkeypatch.setattr(torch.linalg, "qr", None)
    with torch.device("meta"):
        assert NormalizedLinear(3, 4).direction.is_meta


def test_shared_weights_gives_the_same_gradients(generator):
    def gradients(context_on):
        layer = random_(CReLUBlock(6).double(), torch.Generator().manual_seed(1))
        x = torch.randn(5, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

        def loss():
            return layer(x).square().sum() + layer.weight.square().sum()

        if context_on:
            with shared_weights(layer):
                loss().backward()
        else:
            loss().backward()
        assert layer._weight_in_use is None
        return [p.grad for p in layer.parameters()]

    for inside, outside in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(inside, outside, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 1, 7), (7, 3, 4), (2, 5, 2, 5)])
def test_orthogonal_init_looks_linear(shape, generator):
    direction = orthogonal_(torch.empty(shape, dtype=torch.float64), generator)
    first = direction[..., 0, :]
    assert direction.equal(first.unsqueeze(-2).expand_as(direction))
    n_out, n_in = first.shape[-2:]
    gram = first @ first.mT if n_out <= n_in else first.mT @ first
    torch.testing.assert_close(
        gram, torch.eye(min(n_out, n_in), dtype=torch.float64).expand_as(gram)
    )


def test_orthogonal_init_depends_on_its_generator_only():
    def draw(seed):
        return orthogonal_(torch.empty(4, 1, 4), torch.Generator().manual_seed(seed))

    before = torch.get_rng_state()
    assert draw(3).equal(draw(3))
    assert not draw(3).equal(draw(4))
    assert torch.get_rng_state().equal(before)


def test_layer_prints_its_settings():
    assert repr(CReLULinear(3, 2, members=(5,))) == (
        "CReLULinear(3, 2, pieces=2, normalization='l1', members=(5,))"
    )
