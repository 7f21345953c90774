import pytest
import torch

from psilonnet.training import Callback, Plan
from training.small_runs import run_of, small_net


def test_plan_refuses_nonsense():
    with pytest.raises(ValueError, match=r"'batch_size' of a Plan must be .* at least 1. Got 0"):
        Plan(batch_size=0)
    with pytest.raises(ValueError, match=r"'steps' of a Plan must be a whole number.* Got 10.5"):
        Plan(steps=10.5)
    for decay in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"'average' of a Plan must be a decay of at least 0"):
            Plan(average=decay)


def test_history_has_a_line_at_every_mark():
    plan = Plan(steps=50, evaluate_every=20, marks=(7, 20, 33))
    assert [step for step in range(1, 51) if plan.is_evaluated(step)] == [7, 20, 33, 40, 50]
    run = run_of(small_net(), steps=50, evaluate_every=20, marks=(7, 20, 33))
    run.train()
    assert run.history.step == [7, 20, 33, 40, 50]
    assert run.history.valid_loss.isfinite().all()


def doubled(share):
    return 2.0 if share < 0.5 else 6.0


class Strengths(Callback):
    """Keeps the strengths with which each step was taken."""

    def __init__(self):
        self.used = []

    def on_step(self, run):
        self.used.append(run._strengths.tolist())


@pytest.mark.parametrize("variant", ["P-Net", "P-ResNet"])  # written-out gradients, and autograd
def test_strength_is_a_factor_of_every_members_own(variant):
    given, kept = torch.tensor([1e-3, 1e-2, 1e-1]), Strengths()
    run = run_of(
        small_net(variant), variant=variant, strengths=given, steps=20, strength=doubled,
        callbacks=[kept],
    )  # fmt: skip
    run.train()
    expected = [[2e-3, 2e-2, 2e-1]] * 10 + [[6e-3, 6e-2, 6e-1]] * 10
    torch.testing.assert_close(torch.tensor(kept.used), torch.tensor(expected))
    assert run.reg_strength.equal(given)  # the strengths themselves stay
    # A constant factor is the same as strengths that are as many times as large.
    nets = [
        run_of(
            small_net(variant), variant=variant, strengths=strengths, steps=20, strength=factor
        ).train()
        for strengths, factor in ((given, lambda share: 4.0), (4 * given, None))
    ]
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)
