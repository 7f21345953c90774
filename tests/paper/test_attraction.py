"""Section 2.1: why L1 weight normalisation holds coordinates near zero."""

import numpy as np
import pytest
import torch

from psilonnet.functional import normalized_weight, oblique_project


def random_pair(seed: int, size: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    w, x = (torch.from_numpy(rng.normal(size=size)) for _ in range(2))
    return w, x


def one_sided(w: torch.Tensor, x: torch.Tensor, side: float) -> float:
    """Return ``(M_w x)_0`` just beside ``w_0 = 0``."""
    near = w.clone()
    near[0] = side * 1e-13
    return float(oblique_project(near.unsqueeze(0), x.unsqueeze(0))[0, 0])


def pull(w: torch.Tensor, x: torch.Tensor) -> float:
    """Return ``w . x / ||w||_1`` at ``w_0 = 0``."""
    return float(w[1:] @ x[1:] / w[1:].abs().sum())


@pytest.mark.parametrize("seed", range(20))
def test_oblique_projector_has_the_one_sided_limits_of_the_paper(seed):
    w, x = random_pair(seed)
    np.testing.assert_allclose(one_sided(w, x, +1), float(x[0]) - pull(w, x), atol=1e-11)
    np.testing.assert_allclose(one_sided(w, x, -1), float(x[0]) + pull(w, x), atol=1e-11)


def test_oblique_projector_switches_sign_at_zero_iff_the_pull_is_larger():
    switched = []
    for seed in range(200):
        w, x = random_pair(seed)
        switches = one_sided(w, x, +1) * one_sided(w, x, -1) < 0
        assert switches == (abs(float(x[0])) < abs(pull(w, x)))
        switched.append(switches)
    assert 0 < sum(switched) < len(switched)  # both cases occur


def climb(x: list[float], *, order: int, rate: float = 0.02, steps: int = 400) -> torch.Tensor:
    """Return the trajectory of v when ``v / ||v|| . x`` is increased by gradient ascent."""
    v = torch.tensor([1.0, 0.2], dtype=torch.float64, requires_grad=True)
    inputs, length = torch.tensor(x, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    trajectory = []
    for _ in range(steps):
        w = normalized_weight(v[None, None], length, order=order)
        (gradient,) = torch.autograd.grad((w * inputs).sum(), v)
        v = (v + rate * gradient).detach().requires_grad_()
        trajectory.append(v.detach())
    return torch.stack(trajectory)


def test_gradient_ascent_catches_a_weak_coordinate_at_zero():
    rate = 0.02
    late = climb([1.0, 0.3], order=1, rate=rate)[100:, 1]
    assert late.abs().max() < 2 * rate  # one step past zero at most, then back
    assert (late[1:] * late[:-1] < 0).sum() > 100  # it keeps crossing


def test_gradient_ascent_does_not_catch_a_strong_coordinate():
    assert climb([1.0, 1.5], order=1)[-1, 1] > 0.5


def test_gradient_ascent_with_l2_normalisation_has_no_such_attraction():
    final = climb([1.0, 0.3], order=2, rate=0.5)[-1]
    np.testing.assert_allclose(float(final[1] / final[0]), 0.3, atol=1e-3)
