"""Proofs by cases against exact ranges, and verdicts of fitted models."""

import numpy as np
import pytest
import torch

from certify.fitted_models import QUICK, moved_rows, scales_of, table
from certify.test_linear_bound import affine_layers, least_by_milp, relu_net
from psilonnet import PSiLONClassifier
from psilonnet.certify.box import Box
from psilonnet.certify.branching import falls_less_by_cases
from psilonnet.certify.combinations import both_ways
from psilonnet.certify.linear_bound import linear_falls
from psilonnet.nn import AveragedNet
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
        down = asked.at(slice(0, 1))
        down = type(down)(down.table, down.index[:, :1])

        def holds(enough, net=net, x=x, box=box, down=down):
            given = torch.tensor([[enough]], dtype=torch.float64)
            return bool(falls_less_by_cases(net, x, box, down, given, 200))

        assert not holds(true * (1 - 1e-6) - 1e-9)
        assert holds(fall * (1 + 1e-6) + 1e-9)
        nearer += holds((true + fall) / 2 + 1e-9)
        shares.append(fall / max(true, 1e-9))
    assert nearer > 0


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
def test_verdicts_hold():
    frame, y = table()
    model = PSiLONClassifier(**QUICK).fit(frame, y > 0)
    rows = frame[:60]
    words = model.verdict(rows, 0.3, budget=30)
    assert set(words) <= {"proven", "refuted", "open"}
    assert (words == "refuted").any()
    proven = words == "proven"
    assert (proven >= model.is_robust(rows, 0.3)).all()
    assert not proven[model.counterexample(rows, 0.3).rows].any()
    before, rng = model.predict(rows), np.random.default_rng(0)
    for _ in range(30):
        after = model.predict(moved_rows(rows, scales_of(model), rng, 0.3))
        assert (after == before)[proven].all()
