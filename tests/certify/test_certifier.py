"""Proofs about networks of PyTorch users: no table, no estimator."""

import numpy as np
import pytest
import torch
from torch import nn

from psilonnet.certify import Certifier, Perturbation
from psilonnet.nn import PSiLONNet, PSiLONResNet


def nets():
    torch.manual_seed(0)
    yield nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    yield PSiLONNet(3, 3, width=8, depth=2)
    yield PSiLONResNet(3, 1, width=8, depth=2)


@pytest.mark.parametrize("method", ["global", "local"])
@pytest.mark.parametrize("net", [*nets()], ids=lambda net: type(net).__name__)
def test_a_network_is_certified_without_a_table(net, method):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    certifier, exact = Certifier(net), net.double()
    low, high = certifier.output_range(x, 0.1, method=method)
    radius = torch.from_numpy(certifier.certified_radius(x, method=method))
    robust = certifier.is_robust(x, 0.02, method=method)
    assert (radius > 0).all()
    assert robust.any()
    assert not certifier.is_robust(x, 100.0, method=method).all()

    def classes(rows):
        outputs = exact(rows)
        return outputs.argmax(-1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).long()

    with torch.no_grad():
        for _ in range(50):
            step = 2 * torch.rand(40, 3, generator=generator, dtype=torch.float64) - 1
            moved = exact(x + 0.1 * step.sign()).numpy()
            assert ((low <= moved) & (moved <= high)).all()
            assert (classes(x + radius[:, None] * step) == classes(x)).all()
            assert (classes(x + 0.02 * step) == classes(x))[torch.from_numpy(robust)].all()


def test_inputs_may_move_by_their_own_amounts_and_shares():
    net = nn.Sequential(nn.Linear(2, 1, bias=False))
    nn.init.constant_(net[0].weight, 1.0)
    x = torch.tensor([[1.0, 10.0], [2.0, -20.0]])
    certifier = Certifier(net)
    for delta, expected in (
        (0.5, [1.0, 1.0]),
        ([0.0, 3.0], [3.0, 3.0]),
        (np.array([[1.0, 0.0], [0.0, 2.0]]), [1.0, 2.0]),
        (Perturbation(relative=0.1), [1.1, 2.2]),
        (Perturbation(standard_deviations=1.0, relative=0.1), [3.1, 4.2]),
    ):
        low, high = certifier.output_range(x, delta)
        np.testing.assert_allclose((high - low)[:, 0] / 2, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ({"a": 1.0}, "Columns can be named only where there is a table"),
        (Perturbation(levels=["a"]), "Columns can be named only"),
        (Perturbation(relative={"a": 0.1}), "Columns can be named only"),
        ([-1.0, 0.0], "finite and at least 0"),
        (-1.0, "number of standard deviations"),
        ("any", "give a dict"),
    ],
)
def test_wrong_moves_of_inputs_are_refused(delta, said):
    with pytest.raises(ValueError, match=said):
        Certifier(nn.Sequential(nn.Linear(2, 1))).output_range(torch.zeros(1, 2), delta)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="'method' must be one of"):
        Certifier(nn.Sequential(nn.Linear(2, 1))).certified_radius(
            torch.zeros(1, 2), method="exact"
        )
