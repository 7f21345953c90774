import subprocess
import sys
from pathlib import Path

import torch

from training.distributed import Objective, make_problem

SCRIPT = Path(__file__).with_name("distributed.py")


def test_two_processes_give_the_gradients_of_one(tmp_path):
    out = tmp_path / "gradients.pt"
    # Started by hand: torchrun would be one more process that loads torch.
    words = [sys.executable, SCRIPT, out, tmp_path / "meeting"]
    ranks = [
        subprocess.Popen([*words, str(rank)], stderr=subprocess.PIPE, text=True) for rank in (0, 1)
    ]
    try:
        for process in ranks:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
    finally:
        for process in ranks:
            process.kill()
    saved = torch.load(out, weights_only=True)
    net, x, y = make_problem()
    Objective(net)(x, y).backward()
    for ours, parameter in zip(saved["gradients"], net.parameters(), strict=True):
        torch.testing.assert_close(ours, parameter.grad)
    # The penalty is a function of lengths that every rank holds: nothing but the gradients of
    # the parameters themselves went over the wire.
    assert saved["numbers"] == sum(p.numel() for p in net.parameters())
