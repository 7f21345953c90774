import pytest
import torch

from psilonnet.training import one_cycle, trapezoid, trapezoid_of


def test_trapezoid_is_the_schedule_of_the_paper():
    steps = 5000
    rates = [trapezoid(k / (steps - 1)) for k in range(steps)]
    assert rates[0] == pytest.approx(1e-4)
    assert rates[-1] == pytest.approx(1e-4)
    level = [k for k, rate in enumerate(rates) if rate == pytest.approx(2e-3, rel=1e-9)]
    assert level[0] == pytest.approx(0.05 * steps, abs=1)
    assert level[-1] == pytest.approx(0.50 * steps, abs=1)
    assert max(rates) == pytest.approx(2e-3)
    for part in (rates[: level[0]], rates[level[-1] + 1 :]):  # linear on both sides
        slopes = torch.tensor(part, dtype=torch.float64).diff()
        assert slopes.max() - slopes.min() < 1e-12


def test_one_cycle_is_that_of_torch():
    steps = 200
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=2e-2,
        total_steps=steps,
        pct_start=0.2,
        div_factor=2e-2 / 1e-4,
        final_div_factor=1e-4 / 1e-5,
        cycle_momentum=False,
    )
    # torch reaches its peak at 0.2 * steps - 1, we at 0.2 * (steps - 1).
    peak = (0.2 * steps - 1) / (steps - 1)
    for k in range(steps):
        ours = one_cycle(k / (steps - 1), peak=peak)
        assert ours == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if k < steps - 1:
            scheduler.step()
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)


def test_trapezoid_of_another_top_keeps_the_shape():
    schedule = trapezoid_of(1e-2)
    for fraction in (0.0, 0.02, 0.3, 0.7, 1.0):
        assert schedule(fraction) == pytest.approx(5 * trapezoid(fraction))
