"""A run that can be killed and says each step; used by test_checkpoint.py.

python interrupted.py CHECKPOINT FINAL
"""

import sys
from collections.abc import Callable

import torch
from safetensors.torch import save_file

from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import Callback, Checkpoints, Narrowing, Plan, Pruning, Rows, Run


class Tell(Callback):
    def __init__(self, say: Callable[[int], None]):
        self.say = say

    def on_step(self, run: Run) -> None:
        self.say(run.step)


def make_run(callbacks: list) -> Run:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(120, 5, generator=generator)
    rows = Rows(x, x[:, :1] * x[:, 1:2])
    net = PSiLONNet(5, 1, width=16, depth=2, members=(4,), generator=generator)
    plan = Plan(
        steps=240,
        batch_size=40,
        evaluate_every=30,
        prune=Pruning(80, row_norm=5.0, settle=60, drop=0.2),
        progress=False,
    )
    return Run(
        net,
        rows,
        rows,
        loss="squared_error",
        penalty=path_norm_penalty,
        reg_strength=torch.tensor([1e-4, 1e-3, 1e-2, 1e-1]),
        plan=plan,
        callbacks=[Narrowing([(0.5, 2)]), *callbacks],
    )


def train(checkpoint: str, final: str, say: Callable[[int], None]) -> None:
    """Go on from the checkpoint, if there is one, and write the weights at the end."""
    torch.set_num_threads(1)
    run = make_run([Tell(say), Checkpoints(checkpoint, every=7)])
    run.train()
    tensors = {k: v.contiguous() for k, v in run.net.state_dict().items()}
    save_file({**tensors, "valid_loss": run.history.valid_loss}, final)


if __name__ == "__main__":
    train(*sys.argv[1:], say=lambda step: print(step, flush=True))
