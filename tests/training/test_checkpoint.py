import multiprocessing
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from psilonnet.nn import VARIANTS, PSiLONNet, path_norm_penalty, weight_decay_penalty
from psilonnet.training import Callback, Checkpoints, Plan, Rows, Run
from training.interrupted import make_run, train

SCRIPT = Path(__file__).with_name("interrupted.py")


def start(checkpoint, final, **pipes):
    command = [sys.executable, str(SCRIPT), str(checkpoint), str(final)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **pipes)


class Forked:
    """The same run in a process that a server which has imported torch forks: it starts at once."""

    def __init__(self, server, checkpoint, final):
        self.steps, say = server.Pipe(duplex=False)
        arguments = (str(checkpoint), str(final), say.send)
        self.process = server.Process(target=train, args=arguments)
        self.process.start()
        say.close()  # so that the pipe ends when the run does

    def kill_after(self, steps, delay):
        """Kill the run some steps after its start, in the midst of whatever it is doing then."""
        for _ in range(steps):
            self.steps.recv()
        time.sleep(delay)
        self.process.kill()
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL

    def count_steps(self):
        """Let the run end."""
        count = 0
        with suppress(EOFError):
            while self.steps.recv():
                count += 1
        self.process.join()
        assert self.process.exitcode == 0
        return count


def test_run_killed_at_random_moments_ends_bit_identical(tmp_path):
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["psilonnet.training", "torch._dynamo"])
    assert Forked(server, tmp_path / "a", undisturbed).count_steps() == 240
    dice = random.Random(0)
    for _ in range(20):
        run = Forked(server, tmp_path / "b", disturbed)
        run.kill_after(dice.randint(1, 16), dice.uniform(0, 0.02))
    assert not disturbed.exists()
    assert 0 < Forked(server, tmp_path / "b", disturbed).count_steps() < 240
    expected, actual = load_file(undisturbed), load_file(disturbed)
    assert expected.keys() == actual.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(actual[name], tensor, rtol=0, atol=0, equal_nan=True)


def test_ctrl_c_stops_between_two_steps_and_loses_nothing(tmp_path):
    with start(tmp_path / "a", tmp_path / "undisturbed") as whole:
        whole.communicate()
    errors = tmp_path / "errors"
    with (
        errors.open("w") as stream,
        start(tmp_path / "b", tmp_path / "final", stderr=stream) as process,
    ):
        for _ in range(10):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        # Not communicate(): it would miss the lines that readline has read ahead.
        done = 10 + len(process.stdout.readlines())
    assert process.returncode != 0
    assert errors.read_text().rstrip().endswith("KeyboardInterrupt")
    with start(tmp_path / "b", tmp_path / "final") as resumed:
        assert resumed.stdout.readline() == f"{done + 1}\n"  # not one step is done again
        resumed.communicate()
    expected, actual = load_file(tmp_path / "undisturbed"), load_file(tmp_path / "final")
    for name, tensor in expected.items():
        torch.testing.assert_close(actual[name], tensor, rtol=0, atol=0, equal_nan=True)


class Interrupt(Callback):
    def __init__(self, step):
        self.step = step

    def on_step(self, run):
        if run.step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("step", [1, 29, 30, 130, 195, 210])
def test_interruption_leaves_history_and_checkpoint(tmp_path, step):
    path = tmp_path / "checkpoint"
    run = make_run([Interrupt(step), Checkpoints(path, every=1000)])
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert run.history.valid_loss.shape == (step // 30, 4)
    resumed = make_run([Checkpoints(path)])
    resumed.train()
    whole = make_run([])
    whole.train()
    assert resumed.members == whole.members
    assert resumed.history.row_norms == whole.history.row_norms
    for a, b in zip(resumed.net.parameters(), whole.net.parameters(), strict=True):
        assert a.equal(b)
    torch.testing.assert_close(
        resumed.history.valid_loss, whole.history.valid_loss, rtol=0, atol=0, equal_nan=True
    )


def test_checkpoint_of_other_settings_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    run = make_run([Interrupt(20), Checkpoints(path)])
    with pytest.raises(KeyboardInterrupt):
        run.train()
    other = make_run([Checkpoints(path)])
    other.plan = Plan(steps=240, batch_size=41, progress=False)
    with pytest.raises(ValueError, match=r"other settings or data. Delete it to start anew"):
        other.train()
    other = make_run([Checkpoints(path)])
    other.train_rows.y[3] += 1
    with pytest.raises(ValueError, match=r"other settings or data. Delete it to start anew"):
        other.train()


def test_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    run = make_run([Interrupt(20), Checkpoints(path)])
    with pytest.raises(KeyboardInterrupt):
        run.train()
    before = path.read_bytes()

    def refuse(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(OSError, match="No space left"):
        make_run([Checkpoints(path, every=10)]).train()
    assert path.read_bytes() == before


class InMidStep(Callback):
    """Two Ctrl-C within one step: the second is not held back."""

    def on_step(self, run):
        if run.step == 12:
            step = run.optimizer.step

            def press(*arguments):
                step(*arguments)
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

            run.optimizer.step = press


def test_second_interrupt_leaves_the_last_whole_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        make_run([Checkpoints(path, every=7), InMidStep()]).train()
    resumed, whole = make_run([Checkpoints(path)]), make_run([])
    for run in (resumed, whole):
        run.train()
    for a, b in zip(resumed.net.parameters(), whole.net.parameters(), strict=True):
        assert a.equal(b)


def remade(run, **changes):
    """Return the same run anew, with another net or penalty."""
    settings = {"loss": run.loss, "penalty": run.penalty, "reg_strength": run.reg_strength}
    settings |= {"plan": run.plan, "callbacks": run.callbacks} | changes
    return Run(settings.pop("net"), run.train_rows, **settings)


def folds_of(seed, path, **net):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator)
    own = torch.randperm(60, generator=torch.Generator().manual_seed(seed)).reshape(2, 30)
    return Run(
        PSiLONNet(5, 1, width=8, depth=1, members=(2,), generator=generator, **net),
        Rows(x, x[:, :1], own=own),
        loss="squared_error",
        penalty=weight_decay_penalty,
        reg_strength=1e-3,
        plan=Plan(steps=10, batch_size=10, progress=False),
        callbacks=[Checkpoints(path)],
    )


@pytest.mark.parametrize("other", [{"seed": 2}, {"seed": 1, "normalization": "l2"}])
def test_checkpoint_of_other_folds_or_another_net_is_refused(other, tmp_path):
    folds_of(1, tmp_path / "c").train()
    folds_of(1, tmp_path / "c").train()
    with pytest.raises(ValueError, match="other settings or data"):
        folds_of(path=tmp_path / "c", **other).train()


def test_checkpoint_of_other_initial_weights_is_refused(tmp_path):
    def run_from(seed):
        run = folds_of(1, tmp_path / "c")
        generator = torch.Generator().manual_seed(seed)
        net = PSiLONNet(5, 1, width=8, depth=1, members=(2,), generator=generator)
        return remade(run, net=net)

    run_from(1).train()
    run_from(1).train()
    with pytest.raises(ValueError, match="other settings or data"):
        run_from(2).train()


@pytest.mark.parametrize(
    ("penalty", "other"),
    [
        (VARIANTS["L1-IB-ResNet"].penalty, VARIANTS["L1-OB-ResNet"].penalty),
        (partial(path_norm_penalty, bound="merged"), partial(path_norm_penalty, bound="original")),
    ],
)
def test_checkpoint_of_another_penalty_is_refused(penalty, other, tmp_path):
    def run_with(penalty):
        run = folds_of(1, tmp_path / "c")
        return remade(run, net=run.net, penalty=penalty)

    run_with(penalty).train()
    run_with(penalty).train()
    with pytest.raises(ValueError, match="other settings or data"):
        run_with(other).train()


def test_other_file_is_no_checkpoint(tmp_path):
    save_file({"a": torch.zeros(2)}, tmp_path / "c")
    with pytest.raises(ValueError, match=r"is no checkpoint of psilonnet"):
        folds_of(1, tmp_path / "c").train()


def test_missing_folder_is_an_error_before_the_first_step(tmp_path):
    run = folds_of(1, tmp_path / "nowhere" / "c")
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere.* must exist"):
        run.train()
    assert run.step == 0
