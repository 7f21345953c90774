import subprocess
import sys
from pathlib import Path

import torch

from training.distributed import Objective, make_problem

SCRIPT = Path(__file__).with_name("distributed.py")


def test_two_processes_give_the_gradients_of_one(tmp_path):
    out = tmp_path / "gradients.pt"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", str(SCRIPT), str(out)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    saved = torch.load(out, weights_only=True)
    net, x, y = make_problem()
    Objective(net)(x, y).backward()
    for ours, parameter in zip(saved["gradients"], net.parameters(), strict=True):
        torch.testing.assert_close(ours, parameter.grad)
    # The penalty is a function of lengths that every rank holds: nothing but the gradients of
    # the parameters themselves went over the wire.
    assert saved["numbers"] == sum(p.numel() for p in net.parameters())
