"""The moving average of the weights is the one written out, whatever happens to the run."""

import pytest
import torch

from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import Callback, Checkpoints, Plan, RisingPath, Rows, Run
from psilonnet.training.weight_average import EVERY, WeightAverage
from training.small_runs import run_of, small_net


class Trace(Callback):
    """Keeps the weights after each step, and the average at each evaluation."""

    def __init__(self):
        self.weights, self.averages = [], {}

    def on_step(self, run):
        self.weights.append([p.detach().clone() for p in run.net.parameters()])

    def on_evaluation(self, run):
        self.averages[run.step] = [p.detach().clone() for p in run.averaged_net().parameters()]


def written_out(weights, decay):
    """Return the average after all of some steps, in float64."""
    average, taken = None, 0
    for step, parameters in enumerate(weights, start=1):
        if step != 1 and step % EVERY:
            continue
        taken += 1
        share = max(1 - decay**EVERY, 1 / taken)
        values = [p.double() for p in parameters]
        average = average or values
        average = [(1 - share) * a + share * v for a, v in zip(average, values, strict=True)]
    return average


@pytest.mark.parametrize("decay", [0.9, 0.99])
def test_average_is_the_one_written_out(decay):
    trace = Trace()
    run = run_of(small_net(), steps=90, average=decay, evaluate_every=30, callbacks=[trace])
    run.train()
    for step in (30, 60, 90):
        expected = written_out(trace.weights[:step], decay)
        for value, other in zip(trace.averages[step], expected, strict=True):
            torch.testing.assert_close(value.double(), other, rtol=1e-4, atol=1e-6)
    last = list(run.net.parameters())
    assert any((a != b).any() for a, b in zip(trace.averages[90], last, strict=True))
    for a, b in zip(last, trace.weights[-1], strict=True):
        assert a.equal(b)  # the run goes on with its own weights


def test_young_average_is_plain():
    average, net = WeightAverage(0.99), small_net(count=1)
    seen = []
    for step in (1, EVERY, 2 * EVERY):
        with torch.no_grad():
            net.layers[0].direction.add_(1.0)
        seen.append(net.layers[0].direction.detach().clone())
        average.take_in(net, step)
    average.take_in(net, 2 * EVERY + 1)  # steps between are not taken in
    assert average.taken == 3
    other = average.put_into(small_net(count=1, seed=1))
    torch.testing.assert_close(other.layers[0].direction, torch.stack(seen).mean(dim=0))


def test_net_is_left_alone_while_there_is_no_average():
    net = small_net(count=1)
    before = [p.detach().clone() for p in net.parameters()]
    WeightAverage(0.9).put_into(net)
    assert all(a.equal(b) for a, b in zip(before, net.parameters(), strict=True))


def test_held_out_loss_is_that_of_the_average():
    class Compare(Callback):
        def on_evaluation(self, run):
            x, y = run.valid_rows.x, run.valid_rows.y
            with torch.no_grad():
                loss = ((run.averaged_net()(x) - y) ** 2).mean(dim=(1, 2))
            torch.testing.assert_close(run.mean_loss(run.valid_rows), loss)
            line = run.history.valid_loss[-1].float()
            torch.testing.assert_close(line, loss, rtol=1e-5, atol=1e-6)

    run_of(small_net(), steps=50, average=0.95, callbacks=[Compare()]).train()


def test_average_follows_members_that_are_dropped():
    class Drop(Callback):
        def on_evaluation(self, run):
            if run.step == 25:
                run.drop(keep=torch.tensor([True, False, True]))

    def run_with(*callbacks, count=3):
        strengths = torch.tensor([1e-4, 1e-3, 1e-2])
        run = run_of(
            small_net(count=count), strengths=strengths, steps=50, average=0.95, callbacks=callbacks
        )
        run.train()
        return run.averaged_net()

    whole, left = run_with(), run_with(Drop())
    for a, b in zip(whole.parameters(), left.parameters(), strict=True):
        torch.testing.assert_close(a[[0, 2]], b, rtol=1e-4, atol=1e-6)


def path_run(callbacks):
    """Return a run of four networks along a path, one of which is lost on the way."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 5, generator=generator)
    rows = Rows(x, x[:, :1] * x[:, 1:2])
    path = RisingPath((1e-4, 1e-3, 1e-2), level=30, rise=40, learning_rate=1e-2)
    return Run(
        PSiLONNet(5, 1, width=16, depth=2, members=(4,), generator=generator),
        rows,
        rows,
        loss="squared_error",
        penalty=path_norm_penalty,
        reg_strength=1.0,
        plan=path.plan(Plan(batch_size=40, progress=False)),
        callbacks=[_DropOne(), *callbacks],
    )


class _DropOne(Callback):
    def on_evaluation(self, run):
        if run.step == 30:
            run.drop(keep=torch.tensor([0, 1, 3]))


class _Stop(Callback):
    def __init__(self, step):
        self.step = step

    def on_step(self, run):
        if run.step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("step", [1, 3, 29, 31, 50, 69])
def test_path_resumed_in_its_middle_ends_bit_identical(step, tmp_path):
    stopped = path_run([_Stop(step), Checkpoints(tmp_path / "c", every=1000)])
    with pytest.raises(KeyboardInterrupt):
        stopped.train()
    resumed, whole = path_run([Checkpoints(tmp_path / "c")]), path_run([])
    for run in (resumed, whole):
        run.train()
    assert resumed.members == whole.members == [0, 1, 3]
    assert resumed.weight_average.taken == whole.weight_average.taken
    for net, other in ((resumed.net, whole.net), (resumed.averaged_net(), whole.averaged_net())):
        for a, b in zip(net.parameters(), other.parameters(), strict=True):
            assert a.equal(b)
    assert resumed.history.valid_loss.nan_to_num(-1).equal(whole.history.valid_loss.nan_to_num(-1))


@pytest.mark.parametrize("change", [{"average": 0.9}, {"marks": (5,)}, {"strength": None}])
def test_checkpoint_of_another_path_is_refused(change, tmp_path):
    stopped = path_run([_Stop(20), Checkpoints(tmp_path / "c")])
    with pytest.raises(KeyboardInterrupt):
        stopped.train()
    other = path_run([Checkpoints(tmp_path / "c")])
    settings = {k: getattr(other.plan, k) for k in other.plan.__dataclass_fields__}
    other.plan = Plan(**{**settings, **change})
    with pytest.raises(ValueError, match="other settings or data"):
        other.train()
