"""Small networks and rows that are trained in a moment."""

import torch

from psilonnet.nn import VARIANTS, make_net
from psilonnet.training import (
    Plan,
    Rows,
    Run,
    repeat_member,
)


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
