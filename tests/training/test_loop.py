import copy
import signal
import threading

import numpy as np
import pandas as pd
import pytest
import torch

from psilonnet.functional import path_norm
from psilonnet.nn import VARIANTS, PSiLONNet, make_net, path_norm_penalty
from psilonnet.training import (
    Callback,
    DivergedError,
    Narrowing,
    Plan,
    Rows,
    Run,
    narrow,
    one_cycle,
    repeat_member,
    stack_members,
    take_members,
    warm_path,
)
from psilonnet.training.memory import _library


def problem(dtype=torch.float32, rows=300):
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(rows, 6, generator=generator, dtype=torch.float64)
    y = x[:, :1] * x[:, 1:2] + 0.1 * torch.randn(rows, 1, generator=generator, dtype=x.dtype)
    return Rows(x[:200].to(dtype), y[:200].to(dtype)), Rows(x[200:].to(dtype), y[200:].to(dtype))


def run_of(net, *, variant="P-Net", strengths=1e-3, steps=100, callbacks=(), rows=None, **plan):
    train, valid = problem(net.layers[0].direction.dtype) if rows is None else rows
    settings = {"steps": steps, "batch_size": 50, "evaluate_every": 25, "progress": False} | plan
    return Run(
        net,
        train,
        valid,
        loss="squared_error",
        penalty=VARIANTS[variant].penalty,
        reg_strength=strengths,
        plan=Plan(**settings),
        callbacks=callbacks,
    )


def small_net(variant="P-Net", count=3, seed=0, dtype=torch.float32, width=24):
    generator = torch.Generator().manual_seed(seed)
    single = make_net(variant, 6, 1, width=width, depth=3, generator=generator)
    return repeat_member(single.to(dtype), count)


def real_rows(data_dir, n=400):
    table = pd.read_parquet(data_dir / "tabular" / "house_sales.parquet").astype(float)
    values = ((table - table.mean()) / table.std()).to_numpy()[:n]
    x, y = torch.tensor(values[:, :-1]).float(), torch.tensor(values[:, -1:]).float()
    half = n // 2
    return Rows(x[:half], y[:half]), Rows(x[half:], y[half:])


@pytest.mark.parametrize("variant", VARIANTS)
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
    strengths = torch.logspace(-4, -1, 14, dtype=torch.float64)
    together = parameters_after(small_net(count=14, dtype=torch.float64), strengths).net
    for m in (0, 6, 13):
        alone = parameters_after(small_net(count=1, dtype=torch.float64), strengths[m : m + 1]).net
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


def test_narrowing_keeps_the_best_and_its_stronger_neighbours():
    strengths = torch.tensor([1e-3, 10.0, 1e-2, 100.0, 1e-4])
    run = run_of(
        small_net(count=5), strengths=strengths, callbacks=[Narrowing([(0.25, 3), (0.5, 1)])]
    )
    run.train()
    lines = run.history.valid_loss
    assert lines.isfinite().sum(dim=-1).tolist() == [5, 3, 1, 1]
    order = [4, 0, 2, 1, 3]  # members by strength
    best = order.index(int(lines[0].argmin()))
    first = min(best, 2)
    assert set(lines[1].isfinite().nonzero().flatten().tolist()) == set(order[first : first + 3])


def test_narrowing_fills_up_at_the_strong_end():
    assert narrow([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], 2) == [1, 2]
    assert narrow([3.0, 2.0, 1.0], [1.0, 2.0, float("nan")], 2) == [0, 1]
    assert narrow([1.0, 2.0], [1.0, 2.0], 5) == [0, 1]


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


def test_history_has_a_line_per_evaluation():
    run = run_of(small_net(), steps=90)
    run.train()
    history = run.history
    assert history.step == [25, 50, 75, 90]
    assert history.train_loss.shape == (4, 3)
    torch.testing.assert_close(history.penalty[-1], path_norm_penalty(run.net).detach().double())
    torch.testing.assert_close(history.valid_loss[-1], run.mean_loss(run.valid_rows).double())


def test_progress_bar_can_be_turned_off(capsys):
    run_of(small_net(), steps=5).train()
    assert capsys.readouterr() == ("", "")
    run_of(small_net(), steps=5, progress=True).train()
    assert "/5 [" in capsys.readouterr().err


def test_precision_of_torch_is_never_touched():
    """It is one for all threads: another one looks while a network is trained."""
    seen, over = set(), threading.Event()

    def look():
        while not over.is_set():
            seen.add(torch.get_float32_matmul_precision())
            over.wait(0.001)

    thread = threading.Thread(target=look)
    thread.start()
    run_of(small_net(), steps=50, matmul_precision="medium").train()
    over.set()
    thread.join()
    assert seen == {"highest"}


def test_plan_refuses_nonsense():
    with pytest.raises(ValueError, match=r"'batch_size' of a Plan must be .* at least 1. Got 0"):
        Plan(batch_size=0)
    with pytest.raises(ValueError, match=r"'steps' of a Plan must be a whole number.* Got 10.5"):
        Plan(steps=10.5)


def test_warm_path_starts_each_strength_from_the_weights_before():
    starts = []

    def make_run(net, strength):
        starts.append((strength, copy.deepcopy(net)))
        return run_of(net, strengths=strength, steps=20)

    start = take_members(small_net(count=1), 0)
    runs = list(warm_path(start, [1e-1, 1e-3, 1e-2], make_run))
    assert [strength for strength, _ in runs] == [1e-3, 1e-2, 1e-1]
    assert starts[0][1].layers[0].direction[0].equal(start.layers[0].direction)
    for (_, before), (_, after) in zip(runs, starts[1:], strict=False):
        for a, b in zip(before.net.parameters(), after.parameters(), strict=True):
            assert a.equal(b)


def test_denormals_are_flushed_in_training_only():
    seen = []

    class Look(Callback):
        def on_step(self, run):
            seen.append(float(torch.tensor(2e-38) * 0.1))

    run_of(small_net(), steps=2, callbacks=[Look()]).train()
    assert seen == [0.0, 0.0]
    assert float(torch.tensor(2e-38) * 0.1) > 0


def test_members_of_equal_strength_are_dropped_together():
    strengths = torch.tensor([1e-4, 1e-4, 1e-2, 1e-2, 10.0, 10.0])
    run = run_of(small_net(count=6), strengths=strengths, callbacks=[Narrowing([(0.5, 1)])])
    run.train()
    assert len(run.members) == 2
    assert len(set(strengths[run.members].tolist())) == 1


def test_training_asks_the_system_for_no_memory_once_it_runs():
    resource = pytest.importorskip("resource", reason="counts page faults (Unix)")
    if _library() is None:
        pytest.skip("the C library is not glibc")
    faults = []

    class Count(Callback):
        def on_step(self, run):
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)

    net = PSiLONNet(6, 1, width=256, depth=3, members=(8,))
    rows = Rows(torch.randn(256, 6), torch.randn(256, 1))
    plan = Plan(steps=30, batch_size=256, progress=False)
    settings = {"loss": "squared_error", "penalty": path_norm_penalty, "reg_strength": 1e-3}
    Run(net, rows, plan=plan, callbacks=[Count()], **settings).train()
    activations = 8 * 256 * 256 * 4 / 4096  # pages of one layer's
    assert (faults[-1] - faults[9]) / 20 < activations / 4


def test_error_of_an_early_callback_is_not_hidden():
    class Broken(Callback):
        def on_start(self, run):
            raise ValueError("original")

    with pytest.raises(ValueError, match="original"):
        run_of(small_net(), progress=True, callbacks=[Broken()]).train()


def test_ctrl_c_in_the_last_step_is_not_lost():
    class Press(Callback):
        def on_evaluation(self, run):
            if run.step == run.plan.steps:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_of(small_net(), callbacks=[Press()]).train()


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


def test_narrowing_needs_held_out_rows():
    train, _ = problem()
    run = run_of(small_net(), rows=(train, None), callbacks=[Narrowing()])
    with pytest.raises(ValueError, match=r"Narrowing needs held-out rows.*valid_rows"):
        run.train()


def test_narrowing_without_any_finite_loss_is_an_error():
    train, valid = problem()
    spoilt = Rows(valid.x, valid.y * torch.nan)
    strengths = torch.tensor([1e-3, 1e-2, 1e-1])
    run = run_of(
        small_net(), strengths=strengths, rows=(train, spoilt), callbacks=[Narrowing([(0.5, 1)])]
    )
    with pytest.raises(DivergedError, match="No member has a finite loss on the held-out rows"):
        run.train()


@pytest.mark.parametrize("rung", [(0.5, 0), (0.0, 2), (1.5, 2)])
def test_narrowing_refuses_rungs_that_keep_nobody_or_never_come(rung):
    with pytest.raises(ValueError, match=r"fraction above 0 and at most 1.*at least one strength"):
        Narrowing([rung])
