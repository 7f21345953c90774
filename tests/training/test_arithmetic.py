"""The precision of products is set for a run only."""

import threading

import torch

from psilonnet.training import (
    Callback,
)
from psilonnet.training.arithmetic import matmul_precision
from training.small_runs import run_of, small_net


def test_matmul_precision_is_set_for_the_run_only():
    seen = []

    class Look(Callback):
        def on_step(self, run):
            seen.append(torch.get_float32_matmul_precision())

    run_of(small_net(), steps=1, matmul_precision="medium", callbacks=[Look()]).train()
    assert seen == ["medium"]
    assert torch.get_float32_matmul_precision() == "highest"


def test_denormals_are_flushed_in_training_only():
    seen = []

    class Look(Callback):
        def on_step(self, run):
            seen.append(float(torch.tensor(2e-38) * 0.1))

    run_of(small_net(), steps=2, callbacks=[Look()]).train()
    assert seen == [0.0, 0.0]
    assert float(torch.tensor(2e-38) * 0.1) > 0


def test_threads_that_need_other_precisions_take_turns():
    seen, inside, go = [], threading.Event(), threading.Event()
    before = torch.get_float32_matmul_precision()

    def first():
        with matmul_precision("medium"):
            inside.set()
            go.wait()
            seen.append(torch.get_float32_matmul_precision())

    def second():
        with matmul_precision("high"):
            seen.append(torch.get_float32_matmul_precision())

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    go.set()
    for thread in threads:
        thread.join()
    assert seen == ["medium", "high"]
    assert torch.get_float32_matmul_precision() == before
