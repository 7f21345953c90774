"""Gradients that are written out equal those of autograd."""

from itertools import product

import pytest
import torch

from psilonnet.functional import project_sphere, row_norm
from psilonnet.nn import VARIANTS, PSiLONNet, make_net, path_norm_penalty, weight_decay_penalty
from psilonnet.training import (
    LOSSES,
    Batch,
    Callback,
    Pinball,
    Plan,
    Pruning,
    Rows,
    Run,
    get_loss,
    stack_members,
)
from psilonnet.training.explicit import ExplicitGradients, is_explicit
from psilonnet.training.gradients import _AutogradGradients, make_gradients
from psilonnet.training.products import _exact, _rounded, multiply_in
from psilonnet.training.projected_rows import ProjectedRows
from training.small_runs import run_of, small_net

KINDS = {
    "shared L1": {"normalization": "l1", "length": "shared"},
    "L1 per row": {"normalization": "l1", "length": "per_row"},
    "L2 per row": {"normalization": "l2", "length": "per_row"},
    "shared L2": {"normalization": "l2", "length": "shared"},
}
STRENGTHS = torch.tensor([0.0, 1e-3, 1e-2, 0.1], dtype=torch.float64)
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def make_population(kind, generator, *, pieces=1, outputs=1, depth=3, own_edges=False):
    """Return four members with zero rows, zero lengths and ties between pieces."""
    nets = []
    for _ in STRENGTHS:
        edges = None
        if pieces > 1:
            one = torch.randn(pieces - 1, 5, generator=generator).sort(dim=0).values
            edges = one if own_edges or not nets else nets[0].layers[0].edges
        net = PSiLONNet(
            5, outputs, width=6, depth=depth, edges=edges, generator=generator, **KINDS[kind]
        )
        nets.append(net.double())
    net = stack_members(nets)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
        first, last = net.layers[0], net.layers[-1]
        first.direction[0, 1] = 0
        last.direction[1, 0] = 0
        first.direction[2, :, :, 0] = first.direction[2, :, :1, 0]
        first.length[3, 0] = 0
    return net


def make_batch(net, loss, generator, *, own=False, weights=0):
    members, rows = len(STRENGTHS), 11
    outputs = net.layers[-1].direction.shape[1]
    shape = (members, rows) if own else (rows,)
    x = torch.randn(*shape, 5, generator=generator, dtype=torch.float64)
    if loss == "cross_entropy":
        y = torch.randint(outputs, (*shape, 1), generator=generator).double()
    elif loss == "binary_cross_entropy":
        y = torch.rand(*shape, 1, generator=generator, dtype=torch.float64).round()
    else:
        y = torch.randn(*shape, outputs, generator=generator, dtype=torch.float64)
        y = y.abs() if loss == "poisson" else y
    weight = torch.rand((members, rows)[2 - weights :], generator=generator).double()
    return Batch(x, y, weight if weights else None)


def gradients_of(net, gradients):
    flat = gradients.flat
    if flat is None:
        return [p.grad.clone() for p in net.parameters()]
    views = dict(zip(map(id, flat.parameters), flat.views(flat.gradient), strict=True))
    return [views[id(p)].clone() for p in net.parameters()]


def assert_equal_to_autograd(net, batch, loss, dtype=torch.float64, **settings):
    net = net.to(dtype)
    batch = Batch(*(None if t is None else t.to(dtype) for t in (batch.x, batch.y, batch.weight)))
    own = get_loss(LOSSES.get(loss, loss))
    general = _AutogradGradients(net, own, path_norm_penalty, STRENGTHS.to(dtype))
    expected = (*general(batch), *gradients_of(net, general))
    assert is_explicit(net, own, path_norm_penalty)
    written = ExplicitGradients(net, own, STRENGTHS.to(dtype), _exact, **settings)
    found = (*written(batch), *gradients_of(net, written))
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert (a - b).abs().max() <= TOLERANCE[dtype] * b.abs().max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("pieces", "own_edges"), [(1, False), (2, False), (5, False), (3, True)])
def test_gradients_are_those_of_autograd(kind, dtype, pieces, own_edges, generator):
    for depth, outputs, own in product((1, 2, 3), (1, 3), (False, True)):
        net = make_population(
            kind, generator, pieces=pieces, outputs=outputs, depth=depth, own_edges=own_edges
        )
        batch = make_batch(net, "squared_error", generator, own=own)
        assert_equal_to_autograd(net, batch, "squared_error", dtype)


@pytest.mark.parametrize("loss", [*LOSSES, Pinball((0.8,)), Pinball((0.1, 0.5, 0.9))], ids=str)
@pytest.mark.parametrize("weights", [0, 1, 2], ids=["no weights", "weights", "own weights"])
@pytest.mark.parametrize("own", [False, True], ids=["shared rows", "own rows"])
def test_losses_and_weights_are_covered(loss, weights, own, generator):
    outputs = 1 if loss == "binary_cross_entropy" else 3
    net = make_population("shared L1", generator, outputs=outputs)
    batch = make_batch(net, loss, generator, own=own, weights=weights)
    assert_equal_to_autograd(net, batch, loss)


@pytest.mark.parametrize("part", [1, 3, 4])
def test_parts_of_the_members_give_the_same(part, generator):
    for kind in KINDS:
        net = make_population(kind, generator, pieces=3)
        batch = make_batch(net, "squared_error", generator, own=True, weights=2)
        assert_equal_to_autograd(net, batch, "squared_error", part=part)


@pytest.mark.parametrize("variant", ["P-Net", "L2-IB"])
def test_a_training_ends_where_that_of_autograd_does(variant, monkeypatch):
    """Rounding is amplified step by step, more or less by the start: on this one to 1e-11."""

    def trained():
        settings = KINDS["shared L1" if variant == "P-Net" else "L2 per row"]
        generator = torch.Generator().manual_seed(1)
        net = PSiLONNet(6, 1, width=24, depth=3, generator=generator, **settings)
        return run_of(stack_members([net.double()] * 3), steps=300).train()

    written = trained()
    monkeypatch.setattr("psilonnet.training.gradients.is_explicit", lambda *_: False)
    for a, b in zip(written.parameters(), trained().parameters(), strict=True):
        assert (a - b).abs().max() <= 1e-9


def test_knots_are_split_once_or_batch_by_batch(generator, monkeypatch):
    nets = [make_population("shared L1", generator, pieces=4) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64)

    def train(net):
        rows = Rows(x, x[:, :1] * x[:, 1:2])
        plan = Plan(steps=20, batch_size=16, progress=False)
        settings = {"penalty": path_norm_penalty, "reg_strength": STRENGTHS, "plan": plan}
        return Run(net, rows, loss="squared_error", **settings).train()

    once = train(nets[0])
    monkeypatch.setattr("psilonnet.training.explicit.TABLE", 0)
    for a, b in zip(once.parameters(), train(nets[1]).parameters(), strict=True):
        assert a.equal(b)


def test_a_trained_network_is_an_ordinary_one():
    net = run_of(small_net(), steps=3).train()
    for parameter in net.parameters():
        assert parameter.is_contiguous()
        assert parameter.untyped_storage().nbytes() == parameter.nbytes


def test_a_run_can_go_on_after_its_end():
    whole, twice = run_of(small_net(), steps=20), run_of(small_net(), steps=20)
    whole.train()
    for _ in range(7):
        twice.take_step()
    twice.end_steps()
    twice.train()
    for a, b in zip(whole.net.parameters(), twice.net.parameters(), strict=True):
        assert a.equal(b)


def test_a_callback_may_give_parameters_other_values(monkeypatch):
    class Reset(Callback):
        def on_step(self, run):
            if run.step == 5:
                layer = run.net.layers[1]
                layer.direction.data = torch.ones_like(layer.direction)
                run.net.layers[0].bias.data.add_(1.0)

    written = run_of(small_net(dtype=torch.float64), steps=9, callbacks=[Reset()]).train()
    monkeypatch.setattr("psilonnet.training.gradients.is_explicit", lambda *_: False)
    general = run_of(small_net(dtype=torch.float64), steps=9, callbacks=[Reset()]).train()
    for a, b in zip(written.parameters(), general.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def halved(net):
    return 0.5 * path_norm_penalty(net)


def own_loss(output, target):
    return (output - target).abs().sqrt().mean(dim=-1)


def test_everything_else_is_left_to_autograd():
    plain, loss = small_net(), LOSSES["squared_error"]
    assert is_explicit(plain, loss, path_norm_penalty)
    assert is_explicit(plain, loss, VARIANTS["P-Net"].penalty)
    assert not is_explicit(plain, own_loss, path_norm_penalty)
    assert not is_explicit(plain, loss, halved)
    assert not is_explicit(plain, loss, weight_decay_penalty)
    for net in (
        make_net("P-ResNet", 5, 1, width=4, depth=2, members=(2,)),
        PSiLONNet(5, 1, width=4, depth=2, activation="crelu", members=(2,)),
        PSiLONNet(5, 1, width=4, depth=2, bias=False, members=(2,)),
        PSiLONNet(5, 1, width=4, depth=2, normalization="none", length="none", members=(2,)),
    ):
        assert not is_explicit(net, loss, path_norm_penalty)
        made = make_gradients(net, loss, path_norm_penalty, torch.zeros(2), "highest")
        assert isinstance(made, _AutogradGradients)
    per_row = PSiLONNet(5, 1, width=4, depth=2, members=(2,), **KINDS["L1 per row"])
    assert is_explicit(per_row, loss, path_norm_penalty)
    per_row.set_prune_mix(0.5)  # no closed form, and its weights are no multiples of directions
    assert not is_explicit(per_row, loss, path_norm_penalty)
    plain.layers[0].direction.requires_grad_(False)
    assert not is_explicit(plain, loss, path_norm_penalty)


@pytest.mark.parametrize("mix", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("norm", [0.3, 1.0, 4.0, 40.0])
@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_gradients_of_the_pruning_stage_are_those_of_autograd(mix, norm, pieces, generator):
    """Rows inside the ball and outside, with zeros, zero rows and ties."""
    for dtype in TOLERANCE:
        net = make_population("shared L1", generator, pieces=pieces)
        with torch.no_grad():
            for layer in net.layers:
                norms = row_norm(layer.direction).clamp(min=1e-9)
                layer.direction.mul_(norm / norms[..., None, None])
                layer.direction[1, :, :, 2] = 0  # an input that was dropped
        net.set_prune_mix(mix)
        batch = make_batch(net, "squared_error", generator, own=True, weights=2)
        assert_equal_to_autograd(net, batch, "squared_error", dtype)


def test_projected_rows_are_those_of_the_projection(generator):
    """Also where magnitudes are equal, or all but equal: the search for the threshold ends."""
    v = torch.randn(3, 2000, 40, generator=generator)
    v[0] = v[0].round(decimals=2)
    v[1] = torch.nextafter(v[1, :, :1].expand_as(v[1]).contiguous(), v[2])
    v[2, ::2] *= 1e9  # 1 would be lost beside it
    rows = ProjectedRows(v, v.abs(), v.abs(), inputs=2, axes=(2,))
    torch.testing.assert_close(rows.project(), project_sphere(v.unsqueeze(-2)).squeeze(-2))


def test_a_training_that_prunes_ends_where_that_of_autograd_does(monkeypatch):
    def trained():
        net = small_net(seed=1, dtype=torch.float64)
        prune = Pruning(steps=40, row_norm=2.0, settle=20, drop=0.2)
        return run_of(net, steps=80, prune=prune).train()

    written = trained()
    assert (written.exact_sparsity() > 0.3).all()
    monkeypatch.setattr("psilonnet.training.gradients.is_explicit", lambda *_: False)
    for a, b in zip(written.parameters(), trained().parameters(), strict=True):
        assert (a - b).abs().max() <= 1e-9


def test_products_in_bfloat16_are_chosen_where_the_processor_has_them(monkeypatch):
    for has, expected in ((True, _rounded), (False, _exact)):
        monkeypatch.setattr("psilonnet.training.products._has_bfloat16", lambda has=has: has)
        assert multiply_in("medium") is expected
        assert multiply_in("highest") is _exact


def test_rounded_products_are_close(generator):
    net, twin = (make_population("shared L1", torch.Generator().manual_seed(3)) for _ in range(2))
    batch = make_batch(net, "squared_error", generator)
    loss = LOSSES["squared_error"]
    exact = ExplicitGradients(net, loss, STRENGTHS, _exact)
    rounded = ExplicitGradients(twin, loss, STRENGTHS, _rounded)
    torch.testing.assert_close(rounded(batch), exact(batch), rtol=0.03, atol=0.01)
    a, b = rounded.flat.gradient, exact.flat.gradient
    assert (a - b).norm() < 0.02 * b.norm()
    assert not a.equal(b)
