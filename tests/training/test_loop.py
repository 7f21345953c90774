import copy

import numpy as np
import pandas as pd
import pytest
import torch

from psilonnet.functional import path_norm
from psilonnet.nn import VARIANTS, make_net
from psilonnet.training import (
    Callback,
    DivergedError,
    Plan,
    Rows,
    one_cycle,
    repeat_member,
    stack_members,
    take_members,
)
from sizes import size
from training.small_runs import problem, run_of, small_net


def real_rows(data_dir, n=400):
    table = pd.read_parquet(data_dir / "tabular" / "house_sales.parquet").astype(float)
    values = ((table - table.mean()) / table.std()).to_numpy()[:n]
    x, y = torch.tensor(values[:, :-1]).float(), torch.tensor(values[:, -1:]).float()
    half = n // 2
    return Rows(x[:half], y[:half]), Rows(x[half:], y[half:])


@pytest.mark.parametrize(
    "variant", size(["P-Net", "S-Net", "Pj-ResNet", "L2-OB-ResNet"], long=list(VARIANTS))
)
def test_every_variant_trains_on_real_rows_and_its_bound_holds(variant, data_dir, generator):
    rows = real_rows(data_dir)
    row = VARIANTS[variant]
    resnet = "ResNet" in variant
    net = make_net(variant, rows[0].x.shape[1], 1, width=32, depth=4, generator=generator)
    run = run_of(
        repeat_member(net, 2),
        variant=variant,
        strengths=torch.tensor([1e-4, 1e-3]),
        steps=200,
        rows=rows,
        schedule=one_cycle if resnet else Plan().schedule,
        projected=row.training == "projected",
    )
    run.train()
    history = run.history
    assert (history.train_loss[-1] < 0.7 * history.train_loss[0]).all()
    penalty = row.penalty(run.net)
    gradients = torch.autograd.grad(penalty.sum(), list(run.net.parameters()), allow_unused=True)
    assert any(g is not None and g.abs().sum() > 0 for g in gradients)
    # The stronger the regularisation, the smaller what it penalises.
    assert penalty[1] < penalty[0]
    a = rows[1].x
    b = a + 0.1 * torch.rand(a.shape, generator=generator)
    for m in range(2):
        member = take_members(run.net, m).double()
        bound = path_norm(member.weights(), residual=member.residual, bound="improved")
        moved = (member(a.double()) - member(b.double())).abs().sum(dim=-1)
        assert (moved <= bound * (a.double() - b.double()).abs().amax(dim=-1)).all()


def parameters_after(net, strengths, steps=300, **plan):
    run = run_of(net, strengths=strengths, steps=steps, **plan)
    run.train()
    return run


def test_member_follows_its_own_trajectory_in_double_precision():
    # Rounding is amplified step by step, more or less by the start: on this one to 1e-11.
    start = {"seed": 1, "dtype": torch.float64}
    strengths = torch.logspace(-4, -1, 14, dtype=torch.float64)
    together = parameters_after(small_net(count=14, **start), strengths).net
    for m in (0, 6, 13):
        alone = parameters_after(small_net(count=1, **start), strengths[m : m + 1]).net
        for a, b in zip(take_members(together, m).parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(a, b[0], rtol=0, atol=1e-9)


def test_member_in_single_precision_ends_within_the_spread_of_seeds():
    strengths = torch.logspace(-4, -1, 14)
    together = parameters_after(small_net(count=14), strengths).history.valid_loss[-1]
    seeds = torch.stack(
        [
            parameters_after(small_net(count=1, seed=seed), strengths[6:7], seed=seed)
            .history.valid_loss[-1]
            .squeeze()
            for seed in range(5)
        ]
    )
    assert (together[6] - seeds[0]).abs() <= seeds.max() - seeds.min()


def global_numpy_state():
    return np.random.get_state()[1].copy()  # noqa: NPY002 (it is what must not change)


def test_same_seed_same_model_and_no_global_random_state():
    torch_state, numpy_state = torch.get_rng_state(), global_numpy_state()
    first, second = (parameters_after(small_net(), 1e-3, steps=50).net for _ in range(2))
    other = parameters_after(small_net(), 1e-3, steps=50, seed=1).net
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert a.equal(b)
    assert not all(a.equal(b) for a, b in zip(first.parameters(), other.parameters(), strict=True))
    assert torch.get_rng_state().equal(torch_state)
    assert (global_numpy_state() == numpy_state).all()


def test_thousand_small_members_train_in_one_process():
    net = make_net("P-Net", 6, 1, width=32, depth=2, members=(1000,))
    run = run_of(net, steps=4, evaluate_every=2)
    run.train()
    assert run.history.valid_loss.shape == (2, 1000)
    assert run.history.valid_loss.isfinite().all()


def test_members_with_own_rows_learn_from_them_only():
    train, valid = problem(torch.float64)
    own = torch.stack([torch.arange(0, 100), torch.arange(100, 200)])
    rows = Rows(train.x, train.y, own=own)
    together = run_of(small_net(count=2, dtype=torch.float64), rows=(rows, valid), steps=60)
    together.train()
    changed = Rows(train.x, torch.where(torch.arange(200)[:, None] < 100, train.y, 7.0), own=own)
    other = run_of(small_net(count=2, dtype=torch.float64), rows=(changed, valid), steps=60)
    other.train()
    for a, b in zip(together.net.parameters(), other.net.parameters(), strict=True):
        torch.testing.assert_close(a[0], b[0])
        assert not a[1].equal(b[1])


def test_zero_weight_is_absence():
    train, valid = problem(torch.float64)
    weight = (torch.arange(200) < 150).double()
    spoilt = torch.where(weight[:, None] > 0, train.y, 1e3)
    runs = [
        run_of(
            small_net(dtype=torch.float64), rows=(Rows(train.x, y, weight), valid), steps=40
        ).train()
        for y in (train.y, spoilt)
    ]
    for a, b in zip(runs[0].parameters(), runs[1].parameters(), strict=True):
        torch.testing.assert_close(a, b)


class Drop(Callback):
    def __init__(self, step, keep):
        self.step, self.keep = step, keep

    def on_step(self, run):
        if run.step == self.step:
            run.drop(keep=self.keep)


def test_dropping_members_does_not_disturb_the_others():
    strengths = torch.tensor([1e-4, 1e-3, 1e-2], dtype=torch.float64)
    full = parameters_after(small_net(dtype=torch.float64), strengths, steps=100)
    callbacks = [Drop(30, torch.tensor([0, 2]))]
    run = run_of(
        small_net(dtype=torch.float64), strengths=strengths, steps=100, callbacks=callbacks
    )
    run.train()
    assert run.members == [0, 2]
    for a, b in zip(full.net.parameters(), run.net.parameters(), strict=True):
        torch.testing.assert_close(a[[0, 2]], b, rtol=0, atol=1e-10)
    assert run.history.valid_loss[0].isfinite().all()
    assert run.history.valid_loss[-1].isnan().tolist() == [False, True, False]
    assert run.history.last("valid_loss").isfinite().all()


def test_diverging_member_is_reported_and_dropped_without_harm():
    nets = [take_members(small_net(count=1, dtype=torch.float64), 0) for _ in range(3)]
    healthy = run_of(stack_members(nets), steps=50).train()
    sick = copy.deepcopy(nets)
    with torch.no_grad():
        sick[1].layers[-1].length.fill_(torch.nan)
    run = run_of(stack_members(sick), steps=50)
    run.train()
    assert run.members == [0, 2]
    (lost,) = run.history.diverged
    assert (lost.member, lost.step) == (1, 1)
    assert np.isnan(lost.loss)
    for a, b in zip(healthy.parameters(), run.net.parameters(), strict=True):
        torch.testing.assert_close(a[[0, 2]], b)


def test_loss_of_all_members_is_an_error_with_a_remedy():
    net = small_net()
    with torch.no_grad():
        net.layers[0].length.fill_(torch.inf)
    with pytest.raises(DivergedError, match=r"All 3 members diverged.*at step 1 .*Lower the learn"):
        run_of(net).train()


def test_infinite_first_loss_counts_as_diverged():
    run = run_of(small_net(), schedule=lambda fraction: 0.0)
    run.loss = lambda output, target: output.sum(dim=-1) * 0 + torch.inf
    with pytest.raises(DivergedError):
        run.train()


def test_penalty_may_be_a_constant():
    run = run_of(small_net(), steps=5)
    run.penalty = lambda net: torch.zeros(3)
    run.train()
    assert run.history.penalty.equal(torch.zeros(1, 3, dtype=torch.float64))


def test_exploding_loss_counts_as_diverged():
    run = run_of(small_net(), schedule=lambda fraction: 1e4)
    with pytest.raises(DivergedError):
        run.train()
    assert all(lost.step < 50 for lost in run.history.diverged)


@pytest.mark.parametrize("strengths", [-1e-3, float("nan"), float("inf")])
def test_strengths_are_finite_and_not_negative(strengths):
    with pytest.raises(ValueError, match=r"'reg_strength' must be finite and not negative. Got"):
        run_of(small_net(), strengths=strengths)


def test_network_in_a_ball_is_trained_by_projection_only():
    net = small_net("Pj-ResNet")
    with pytest.raises(ValueError, match=r"normalization='ball'.*Plan\(projected=True\)"):
        run_of(net, variant="Pj-ResNet")


@pytest.mark.parametrize("rate", [-1e-3, float("nan")])
def test_learning_rate_is_not_negative(rate):
    run = run_of(small_net(), schedule=lambda fraction: rate if fraction > 0.5 else 1e-3)
    with pytest.raises(ValueError, match=r"schedule must give a learning rate of at least 0. Got"):
        run.train()


def test_loss_is_one_number_per_row_and_member():
    run = run_of(small_net())
    run.loss = lambda output, target: (output - target).square().mean()
    with pytest.raises(ValueError, match=r"one number per member and row.*\(3, 50\). Got \(\)"):
        run.train()


def test_member_that_is_lost_in_the_last_step_is_reported_too():
    class Explode(Callback):
        def on_step(self, run):
            if run.step == 9:  # the loss of the last step is finite, what it does is not
                run.reg_strength[1] = torch.nan

    run = run_of(small_net(), steps=10, callbacks=[Explode()])
    run.train()
    assert run.members == [0, 2]
    assert [(lost.member, lost.step) for lost in run.history.diverged] == [(1, 10)]
    assert all(parameter.isfinite().all() for parameter in run.net.parameters())
    run = run_of(small_net(), steps=10, schedule=lambda fraction: 1e-3 if fraction < 1 else np.inf)
    with pytest.raises(DivergedError, match="All 3 members diverged, the first at step 10"):
        run.train()


def test_members_are_dropped_by_number_or_by_mask():
    by_number, by_mask = (
        run_of(small_net(), steps=60, callbacks=[Drop(30, torch.tensor(keep))])
        for keep in ([0, 2], [True, False, True])
    )
    for run in (by_number, by_mask):
        run.train()
    assert by_mask.members == [0, 2]
    for a, b in zip(by_number.net.parameters(), by_mask.net.parameters(), strict=True):
        assert a.equal(b)
