"""Settings of torch that hold for the whole process are left alone, or restored."""

import threading

import torch

from psilonnet.training import Callback
from training.small_runs import run_of, small_net


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


def test_denormals_are_flushed_in_training_only():
    seen = []

    class Look(Callback):
        def on_step(self, run):
            seen.append(float(torch.tensor(2e-38) * 0.1))

    run_of(small_net(), steps=2, callbacks=[Look()]).train()
    assert seen == [0.0, 0.0]
    assert float(torch.tensor(2e-38) * 0.1) > 0
