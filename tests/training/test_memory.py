import ctypes
import os
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager

import pytest
import torch

from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import (
    Callback,
    Plan,
    Rows,
    Run,
)
from psilonnet.training.memory import _library, kept_memory

# Bytes: more than the C library ever takes from its heap by itself, and more than any hole that
# trainings of other tests in this process may have left in the heap. Nobody writes into it.
LARGE = 2**29
needs_glibc = pytest.mark.skipif(_library() is None, reason="the C library is not glibc")


class Mallinfo(ctypes.Structure):
    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
    _fields_ = tuple((name, ctypes.c_int) for name in (*names, "fordblks", "keepcost"))


def is_kept():
    """Whether a large block that is freed stays: it comes from the heap, not from the system."""
    library = ctypes.CDLL(None)
    library.mallinfo.restype = Mallinfo
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    before = library.mallinfo().hblks
    block = library.malloc(LARGE)
    mapped = library.mallinfo().hblks - before
    library.free(block)
    return mapped == 0


@contextmanager
def training_in_a_thread():
    """A training that began before, in another thread, and ends with the block."""
    inside, go = threading.Event(), threading.Event()

    def train():
        with kept_memory():
            inside.set()
            go.wait()

    thread = threading.Thread(target=train)
    thread.start()
    inside.wait()
    yield
    go.set()
    thread.join()


@needs_glibc
@pytest.mark.parametrize("other", [kept_memory, training_in_a_thread])
def test_memory_is_kept_until_the_last_training_ends(other):
    assert not is_kept()
    with kept_memory():
        with other():
            assert is_kept()
        assert is_kept()
    assert not is_kept()
    first = ExitStack()
    first.enter_context(other())
    with kept_memory():
        first.close()
        assert is_kept()
    assert not is_kept()


@needs_glibc
def test_memory_is_given_back_after_an_error():
    with pytest.raises(ZeroDivisionError), kept_memory(), kept_memory():
        _ = 1 / 0
    assert not is_kept()


def small_run(*callbacks):
    x = torch.randn(20, 3)
    settings = {"loss": "squared_error", "penalty": path_norm_penalty, "reg_strength": 1e-3}
    plan = Plan(steps=3, batch_size=10, progress=False)
    net = PSiLONNet(3, 1, width=4, members=(2,))
    return Run(net, Rows(x, x[:, :1]), plan=plan, callbacks=callbacks, **settings)


@needs_glibc
def test_a_training_within_another_leaves_it_its_memory():
    seen = []

    class Inner(Callback):
        def on_step(self, run):
            small_run().train()
            seen.append(is_kept())

    small_run(Inner()).train()
    assert seen == [True] * 3
    assert not is_kept()


@needs_glibc
@pytest.mark.parametrize(
    "setting",
    [
        {"MALLOC_MMAP_THRESHOLD_": str(2 * LARGE)},
        {"GLIBC_TUNABLES": f"glibc.malloc.mmap_threshold={2 * LARGE}"},
    ],
)
def test_settings_of_the_environment_stay(setting):
    code = """
from training.test_memory import is_kept
from psilonnet.training.memory import kept_memory
before = is_kept()
with kept_memory():
    pass
print(before, is_kept())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **setting, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "True True\n"


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
