"""Proofs by cases against exact ranges, and verdicts of fitted models."""

import numpy as np
import pytest
import torch

from certify.fitted_models import MODELS, QUICK, moved_rows, scales_of, table
from certify.random_averages import random_net
from certify.test_linear_bound import affine_layers, least_by_milp, least_over_patterns, relu_net
from psilonnet import PSiLONClassifier
from psilonnet.certify.box import Box, Jump
from psilonnet.certify.branching import falls_less_by_cases
from psilonnet.certify.combinations import Combinations, both_ways
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.nn import AveragedNet, PlainNet
from sizes import size


def test_cases_prove_more_than_a_linear_bound_and_nothing_false():
    generator = torch.Generator().manual_seed(0)
    nearer, shares = 0, []
    for _ in range(size(3, long=30)):
        plain = relu_net(generator, 3, 8, 2)
        net, x = AveragedNet.of(plain), torch.randn(1, 3, generator=generator, dtype=torch.float64)
        box, asked = Box.of(torch.full_like(x, 0.4)), both_ways(1, 1)
        fall = float(linear_falls(net, x, box, asked)[0, 0])
        low, high = (x[0] - 0.4).numpy(), (x[0] + 0.4).numpy()
        true = float(net(x)) - least_by_milp([affine_layers(plain)], [1.0], low, high)
        assert not down_from(net, x, box, true * (1 - 1e-6) - 1e-9, 200)
        assert down_from(net, x, box, fall * (1 + 1e-6) + 1e-9, 200)
        nearer += down_from(net, x, box, (true + fall) / 2 + 1e-9, 200)
        shares.append(fall / max(true, 1e-9))
    assert nearer > 0


def down_from(net, x, box, enough, budget):
    """Return whether the first output is proven to fall by less than enough."""
    asked = both_ways(1, 1)
    asked = Combinations(asked.table, asked.index[:, :1])
    given = torch.tensor([[enough]], dtype=torch.float64)
    return bool(falls_less_by_cases(net, x, box, asked, given, budget))


def test_few_columns_decide_every_tiny_net_as_all_patterns_do():
    generator = torch.Generator().manual_seed(1)
    for _ in range(size(5, long=50)):
        plain = relu_net(generator, 2, 3, 2)
        net, x = AveragedNet.of(plain), torch.randn(1, 2, generator=generator, dtype=torch.float64)
        low, high = (x[0] - 0.7).numpy(), (x[0] + 0.7).numpy()
        true = float(net(x)) - least_over_patterns(affine_layers(plain), low, high)
        box = Box.of(torch.full_like(x, 0.7))
        assert down_from(net, x, box, true * 1.01 + 1e-6, 2000)
        assert not down_from(net, x, box, true * 0.999 - 1e-6, 300)


def test_states_of_categories_are_taken_one_by_one():
    """Two categories of three levels and a number: the least over all states and a fine grid."""
    generator = torch.Generator().manual_seed(2)
    states = torch.cat((torch.eye(3), torch.zeros(1, 3))).double()
    jumps = [Jump(np.arange(3), states.numpy()), Jump(np.arange(3, 6), states.numpy())]
    for kind in ("P-Net", "knots", "P-ResNet"):
        plain = PlainNet(random_net(generator, kind, 7, 1))
        net, x = AveragedNet.of(plain), torch.zeros(1, 7, dtype=torch.float64)
        box = Box.of(torch.tensor([[0.0] * 6 + [0.5]]), jumps)
        grid = torch.linspace(-0.5, 0.5, 2001, dtype=torch.float64).unsqueeze(1)
        values = [
            float(net(torch.cat((a.expand(2001, 3), b.expand(2001, 3), grid), dim=1)).min())
            for a in states
            for b in states
        ]
        true = float(net(x)) - min(values)
        assert down_from(net, x, box, true * 1.01 + 1e-3, 1000)
        assert not down_from(net, x, box, true * 0.999 - 1e-6, 200)


def test_a_network_without_hidden_layers_needs_no_cases():
    net = AveragedNet.of(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    x, reach = torch.zeros(1, 2, dtype=torch.float64), net.parts[0].net.layers[0].weight.abs().sum()
    box = Box.of(torch.ones_like(x))
    assert down_from(net, x, box, float(reach) * 1.001, 1)
    assert not down_from(net, x, box, float(reach) * 0.999, 50)


@pytest.mark.parametrize("kind", ["plain", "pruned"])
@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
def test_verdicts_hold(kind):
    frame, y = table()
    model = PSiLONClassifier(**{**QUICK, **MODELS[kind]}).fit(frame, y > 0)
    rows = frame[:30]
    words = model.verdict(rows, 0.3, budget=16)
    assert set(words) <= {"proven", "refuted", "open"}
    assert (words == "refuted").any()
    proven = words == "proven"
    assert (proven >= model.is_robust(rows, 0.3)).all()
    assert not proven[model.counterexample(rows, 0.3).rows].any()
    before, rng = model.predict(rows), np.random.default_rng(0)
    for _ in range(30):
        after = model.predict(moved_rows(rows, scales_of(model), rng, 0.3))
        assert (after == before)[proven].all()
