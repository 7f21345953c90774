import copy

import pytest
import torch

from psilonnet.deploy import CompactNet
from psilonnet.functional import row_norm
from psilonnet.nn import make_net, path_norm_penalty
from psilonnet.training import Callback, Plan, Pruning, Rows, Run, live_widths
from psilonnet.training.adam import Adam
from psilonnet.training.pruning import LEAST_NORM, drop_neurons_, rescale_rows_


def test_mix_rises_linearly_over_the_last_steps_to_one():
    mixes = [Pruning(steps=10).mix_at(k, 100) for k in range(100)]
    assert mixes[:90] == [0.0] * 90
    assert mixes[90:] == pytest.approx([k / 10 for k in range(1, 11)])


def test_mix_reaches_one_early_if_training_is_to_settle():
    mixes = [Pruning(steps=10, settle=4).mix_at(k, 100) for k in range(100)]
    assert mixes[90:96] == pytest.approx([k / 6 for k in range(1, 7)])
    assert mixes[96:] == [1.0] * 4


def test_pruning_from_the_start_is_a_stage_of_the_whole_length():
    mixes = [Pruning(steps=100).mix_at(k, 100) for k in range(100)]
    assert mixes[0] > 0
    assert mixes[-1] == 1


def test_stage_ends_where_the_mix_is_one_first():
    for stage in (Pruning(10), Pruning(10, settle=4), Pruning(100, settle=99), Pruning(200)):
        mixes = [stage.mix_at(k, 100) for k in range(100)]
        assert stage.ends_at(100) == mixes.index(1)


def problem(generator):
    x = torch.randn(200, 6, generator=generator)
    return Rows(x, x[:, :1] * x[:, 1:2])


def run_of(net, rows, stage, *callbacks, **plan):
    return Run(
        net,
        rows,
        loss="squared_error",
        penalty=path_norm_penalty,
        reg_strength=1e-3,
        plan=Plan(steps=60, batch_size=50, prune=stage, progress=False, **plan),
        callbacks=callbacks,
    )


def pruned_run(net, generator, stage, *callbacks):
    run = run_of(net, problem(generator), stage, *callbacks)
    run.train()
    return run


class NormsAreKept:
    """A callback that checks the row norms of every layer after every step."""

    def __init__(self):
        self.steps = 0

    def on_step(self, run):
        self.steps += 1
        for layer in run.net.layers:
            with torch.no_grad():
                norms = row_norm(layer.weight)
            torch.testing.assert_close(norms, layer.length.detach().abs().expand_as(norms))

    def __getattr__(self, name):
        return lambda run: None


@pytest.mark.parametrize("variant", ["P-Net", "P-ResNet"])
@pytest.mark.parametrize("norm", [None, 30.0])
def test_pruning_ends_in_exact_zeros_with_norms_kept_at_every_step(variant, norm, generator):
    net = make_net(variant, 6, 1, width=32, depth=3, members=(2,), generator=generator)
    check = NormsAreKept()
    run = pruned_run(net, generator, Pruning(20, row_norm=norm), check)
    assert check.steps == 60
    assert (run.net.exact_sparsity() > 0).all()
    assert len(run.history.row_norms) == len(net.layers)
    if norm is not None:
        assert run.history.row_norms == pytest.approx([norm] * len(net.layers), rel=1e-5)
        assert (run.net.exact_sparsity() > 0.5).all()


def test_rescaled_rows_give_the_same_weights_and_scaled_moments(generator):
    net = make_net("P-Net", 6, 1, width=8, depth=2, members=(2,), generator=generator)
    optimizer = Adam(net.parameters())
    x = torch.randn(20, 6, generator=generator)
    net(x).square().sum().backward()
    optimizer.step(1e-2)
    weights = [w.detach().clone() for w in net.weights()]
    rescale_rows_(net, torch.tensor(50.0), optimizer)
    for before, after in zip(weights, net.weights(), strict=True):
        torch.testing.assert_close(before, after)
    # The moments are those of the gradient at the new scale.
    net.zero_grad()
    net(x).square().sum().backward()
    v = net.layers[0].direction
    assert row_norm(v.detach()).sub(50).abs().max() < 1e-4
    assert optimizer.state[v]["exp_avg"].abs().max() < 10 * v.grad.abs().max()


def test_live_widths_count_what_reaches_the_output():
    net = make_net("P-Net", 3, 1, width=4, depth=2)
    net.set_prune_mix(1.0)
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.zero_()
        net.layers[2].direction[0, 0, :2] = 10.0  # the output reads neurons 0 and 1
        net.layers[1].direction[:, 0, 3] = 10.0  # all of which read neuron 3
        net.layers[0].direction[:, 0, 1] = 10.0  # all of which read input 1
    assert live_widths(net) == [1, 1, 2, 1]


def test_live_widths_of_a_residual_net_include_the_skips():
    net = make_net("P-ResNet", 3, 1, width=4, depth=2)
    net.set_prune_mix(1.0)
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.zero_()
            layer.length.fill_(1.0)
        net.layers[2].direction[0, 0, :2] = 10.0
        net.layers[1].direction[:, 0, 3] = 10.0
        net.layers[0].direction[:, 0, 1] = 10.0
    assert live_widths(net) == [1, 3, 2, 1]


@pytest.mark.parametrize("drop", [0.1, 0.5])
def test_dropped_neurons_stay_dropped(drop, generator):
    net = make_net("P-Net", 6, 1, width=64, depth=3, members=(1,), generator=generator)
    kept, less = (
        pruned_run(copy.deepcopy(net), torch.Generator().manual_seed(0), stage)
        for stage in (Pruning(40, 8.0, settle=20), Pruning(40, 8.0, settle=20, drop=drop))
    )
    fewer, more = (CompactNet(run.net).widths for run in (less, kept))
    assert all(a < b for a, b in zip(fewer[1:-1], more[1:-1], strict=True))
    assert min(fewer) > 0


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
def test_dropped_neurons_carry_no_more_than_their_share(share, generator):
    net = make_net("P-Net", 6, 2, width=32, depth=1, generator=generator)
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.add_(torch.randn(layer.direction.shape, generator=generator))
    norms = row_norm(net.layers[1].direction.detach())
    mass = net.layers[1].weight.detach().abs().sum(dim=(0, 1))
    drop_neurons_(net, torch.tensor(share), Adam(net.parameters()))
    gone = (net.layers[1].direction == 0).all(dim=0).all(dim=0)
    assert float(mass[gone].sum()) <= share * float(mass.sum())
    assert bool(gone.any()) == (share > 0)
    if share > 0:
        assert mass[gone].max() <= mass[~gone].min()
    after = row_norm(net.layers[1].direction.detach())
    assert (after <= norms * (1 + 1e-5)).all()
    assert (after >= norms.clamp(max=LEAST_NORM) * (1 - 1e-5)).all()


def test_each_member_loses_its_own_share(generator):
    net = make_net("P-Net", 6, 1, width=64, depth=2, members=(3,), generator=generator)
    stage = Pruning(40, 8.0, settle=20, drop=(0.0, 0.4))
    run = pruned_run(net, generator, stage)
    first, second, third = (sum(CompactNet(run.net, m).widths) for m in range(3))
    assert second < min(first, third)  # the third begins the tuple again


@pytest.mark.parametrize(("share", "gone"), [(0.12, 0), (0.13, 1), (0.26, 1), (0.27, 2)])
def test_parts_smaller_than_a_neuron_add_up(share, gone, generator):
    net = make_net("P-Net", 6, 1, width=8, depth=1, members=(1,), generator=generator)
    with torch.no_grad():
        net.layers[1].direction.fill_(1.0)  # all carry an eighth of the bound
    stage = Pruning(20, settle=10, drop=share)
    run = run_of(net, problem(generator), stage, schedule=lambda fraction: 0.0)
    run.train()
    assert int((run.net.layers[1].direction == 0).sum()) == gone
    # One of eight, then one of the seven that carry all of the bound then.
    rest = share - sum(1 / (8 - k) for k in range(gone))
    assert run.owed.tolist() == [[pytest.approx(rest, abs=1e-6)]]


def test_heaviest_neuron_stays_where_none_carries_anything(generator):
    net = make_net("P-Net", 6, 1, width=8, depth=2, generator=generator)
    with torch.no_grad():
        net.layers[2].length.zero_()
    left = drop_neurons_(net, torch.tensor(0.3), Adam(net.parameters()))
    assert left.isfinite().all()
    for layer in net.layers[1:]:
        assert (layer.direction != 0).any(dim=-1).all()


class Leave(Callback):
    """All members but some go when a step is done."""

    def __init__(self, step, keep):
        self.step, self.keep = step, keep

    def on_step(self, run):
        if run.step == self.step:
            run.drop(keep=torch.tensor(self.keep))


def test_what_is_left_to_drop_is_a_members_own():
    def pruned(*callbacks):
        generator = torch.Generator().manual_seed(0)
        net = make_net("P-Net", 6, 1, width=12, depth=2, members=(3,), generator=generator).double()
        stage = Pruning(40, 4.0, settle=20, drop=(0.3, 0.2, 0.1))
        run = run_of(net, problem(generator), stage, *callbacks)
        run.train()
        return run

    whole = pruned()
    assert (whole.owed > 0).all()
    assert whole.owed.unique(dim=0).shape == (3, 2)
    for step, keep in ((10, [1, 2]), (45, [2, 0]), (50, [1])):
        some = pruned(Leave(step, keep))
        torch.testing.assert_close(some.owed, whole.owed[keep], rtol=0, atol=1e-9)
        for a, b in zip(some.net.layers, whole.net.layers, strict=True):
            assert ((a.direction == 0) == (b.direction[keep] == 0)).all()


@pytest.mark.parametrize("settle", [0, 3, 20, 750])
def test_neurons_are_dropped_in_parts(settle):
    stage = Pruning(1000, settle=settle, drop=0.2)
    parts = [stage.part_at(step, 2000) for step in range(2000)]
    assert sum(parts) == 1
    assert not any(parts[: stage.ends_at(2000)])
    assert sum(map(bool, parts)) == min(8, max(1, settle))


def test_residual_blocks_keep_what_they_hand_on(generator):
    net = make_net("P-ResNet", 6, 1, width=32, depth=3, generator=generator)
    blocks = [layer for layer in net.layers if layer.residual]
    before = [layer.direction.detach().clone() for layer in blocks]
    drop_neurons_(net, torch.tensor(0.3), Adam(net.parameters()))
    assert all(torch.equal(a, b.direction) for a, b in zip(before, blocks, strict=True))
    assert (net.layers[-1].direction == 0).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, r"'steps' of a Pruning must be a whole number of at least 1. Got 0"),
        ({"settle": -1}, r"'settle'.* between 0 and its 1000 steps. Got -1"),
        ({"steps": 10, "settle": 11}, r"'settle'.* between 0 and its 10 steps. Got 11"),
        ({"drop": 1.0}, r"'drop'.* at least 0 and below 1. Got 1.0"),
        ({"drop": (0.1, -0.1)}, r"'drop'.* at least 0 and below 1. Got \(0.1, -0.1\)"),
        ({"row_norm": 0.0}, r"'row_norm'.* above 0. Got 0.0"),
        ({"row_norm": (4.0, float("nan"))}, r"'row_norm'.* above 0. Got \(4.0, nan\)"),
    ],
)
def test_stage_refuses_nonsense(settings, message):
    with pytest.raises(ValueError, match=message):
        Pruning(**settings)


def test_stage_longer_than_the_plan_is_refused():
    with pytest.raises(ValueError, match=r"prune for 1000 steps.* must have as many. Got 60"):
        Plan(steps=60, prune=Pruning())


def test_network_that_cannot_be_pruned_is_refused_before_it_is_trained(generator):
    net = make_net("S-Net", 6, 1, width=8, depth=2, members=(2,), generator=generator)
    with pytest.raises(ValueError, match="needs normalization='l1'"):
        run_of(net, problem(generator), Pruning(20))


def test_pruned_network_is_dense_again_until_the_stage_begins(generator):
    net = make_net("P-Net", 6, 1, width=8, depth=2, members=(2,), generator=generator)
    net.set_prune_mix(1.0)  # it was pruned before, as on a warm path
    run = run_of(net, problem(generator), Pruning(20), evaluate_every=10)
    run.train()
    assert run.history.prune_mix == pytest.approx([0, 0, 0, 0, 0.5, 1.0])
