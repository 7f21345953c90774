from dataclasses import replace
from fractions import Fraction

import pytest
import torch

from certify.random_averages import KINDS as ALL_KINDS
from certify.random_averages import random_part
from nn.test_monotone import KINDS, SIGNS, net_of
from psilonnet.certify import (
    Certifier,
    averaged,
    forward_error,
    increasing_term,
    input_moves,
    slope_range,
)
from psilonnet.nn import AveragedNet, MonotoneNet, PlainNet, path_norm_penalty
from sizes import size

ONE = torch.ones(1, 1, dtype=torch.float64)


def random_monotone(seed, columns=4):
    """Return an average of two parts behind maps, one output, with terms for random signs."""
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(-1, 2, (columns,), generator=generator)
    bent = torch.rand(columns, generator=generator) < 0.7
    parts = []
    for share in (0.7, 0.3):
        kind = ALL_KINDS[int(torch.randint(len(ALL_KINDS), (), generator=generator))]
        part = random_part(generator, kind, columns, 1, bent, share)
        term = increasing_term(part.net, signs[part.inputs])
        parts.append(replace(part, increasing=term))
    return AveragedNet(parts, columns), signs, generator


@pytest.mark.parametrize("seed", range(size(12, long=100)))
def test_averages_behind_maps_keep_their_signs_and_their_slopes(seed):
    net, signs, generator = random_monotone(seed)
    low, high = (end[0] for end in slope_range(net))
    assert (low[signs > 0] == 0).all()
    assert (high[signs < 0] == 0).all()
    assert (high - low <= 2.0001 * input_moves(net, ONE)[0] + 1e-300).all()
    x = 3 * torch.randn(200, 4, generator=generator).double()
    for column in range(4):
        rise = 10.0 ** torch.randint(-3, 2, (200,), generator=generator).double()
        moved = x.clone()
        moved[:, column] += rise
        rise = moved[:, column] - x[:, column]
        step = (net(moved) - net(x))[:, 0]
        error = forward_error(net, x, rise)
        assert (step >= low[column] * rise - 2 * error).all()
        assert (step <= high[column] * rise + 2 * error).all()
        if signs[column]:
            assert (signs[column] * step >= -2 * error).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sequential"])
def test_the_certified_function_is_that_of_the_module(kind):
    module = MonotoneNet(net_of(kind), SIGNS)
    net, x = averaged(module), torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        outputs = module(x.double())
        expected = outputs.mean(dim=0) if outputs.dim() == 3 else outputs
    bound = float(input_moves(net, ONE).sum())
    # Coefficients are rounded up to numbers of float32.
    assert (net(x) - expected).abs().max() <= 1e-6 * bound * x.abs().max()
    assert bound <= 1.00001 * float(path_norm_penalty(module).detach().mean())
    radius = Certifier(module).certified_radius(x.double(), method="local")
    assert (radius >= Certifier(module).certified_radius(x.double())).all()


def test_a_network_that_certificates_do_not_know_is_refused():
    with pytest.raises(TypeError, match="Tanh"):
        Certifier(MonotoneNet(net_of("sequential"), SIGNS))


class Tenfold(MonotoneNet):
    def forward(self, x):
        return 10 * super().forward(x)


class OfMore(MonotoneNet):
    def coefficients(self):
        return 10 * super().coefficients()


@pytest.mark.parametrize("changed", ["forward", "coefficients", "forward of its own", "hook"])
def test_a_monotone_net_that_does_more_is_refused(changed):
    """Proofs never call it, so they were about another function."""
    kind = {"forward": Tenfold, "coefficients": OfMore}.get(changed, MonotoneNet)
    module = kind(net_of("relu"), SIGNS)
    if changed == "hook":
        module.register_forward_hook(lambda module, given, output: 10 * output)
    elif changed == "forward of its own":
        module.forward = lambda x: 10 * x[:, :1]
    for ask in (Certifier, path_norm_penalty):
        with pytest.raises(TypeError, match="of them, and nothing else"):
            ask(module)


def mass_of(net, piece, column):
    """Return the mass of a piece in a network, in exact arithmetic."""
    first, *rest = net.layers
    mass = [Fraction(1)]
    for layer in reversed(rest):
        weight = layer.weight[0].abs().amax(dim=1).tolist()
        mass = [
            sum((m * Fraction(row[i]) for m, row in zip(mass, weight, strict=True)), Fraction(0))
            for i in range(len(weight[0]))
        ]
    own = first.weight[0, :, piece, column].abs().tolist()
    return sum((m * Fraction(w) for m, w in zip(mass, own, strict=True)), Fraction(0))


@pytest.mark.parametrize("kind", ["relu", "knots", "residual", "l2"])
def test_terms_are_above_the_masses_in_exact_arithmetic_and_numbers_of_float32(kind):
    layers = [layer.rounded() for layer in PlainNet(net_of(kind, seed=4)).layers]
    net = PlainNet.of_layers(layers)
    term = increasing_term(net, torch.tensor([1, 0, -1, 0]))
    assert term.float().double().equal(term)
    assert (term[..., [1, 3]] == 0).all()
    for column, sign in ((0, 1), (2, -1)):
        for piece in range(term.shape[1]):
            exact, found = mass_of(net, piece, column), sign * float(term[0, piece, column])
            assert exact <= Fraction(found) <= exact * Fraction(1.000001)


def test_a_term_that_is_too_small_proves_nothing():
    net = averaged(MonotoneNet(net_of("knots"), SIGNS))
    (part,) = net.networks
    weak = AveragedNet([replace(part, increasing=part.increasing * 0.9)], net.columns)
    low, high = (end[0] for end in slope_range(weak))
    assert low[0] < 0 < high[2]
