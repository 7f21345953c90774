import subprocess
import sys

import torch

from psilonnet.nn import PSiLONNet
from psilonnet.training.adam import Adam


def make_pair(generator):
    net = PSiLONNet(5, 2, width=8, depth=2, members=(3,), generator=generator)
    net.layers[1].bias.requires_grad_(False)  # stays as it is
    twin = PSiLONNet(5, 2, width=8, depth=2, members=(3,), generator=generator)
    twin.load_state_dict(net.state_dict())
    twin.layers[1].bias.requires_grad_(False)
    return net, twin


def differentiate(net, x):
    net.zero_grad()
    net(x).square().sum().backward()


def test_steps_are_those_of_torch_to_the_last_bit(generator):
    net, twin = make_pair(generator)
    ours, theirs = Adam(net.parameters()), torch.optim.Adam(twin.parameters(), fused=True)
    for rate in (1e-2, 3e-2, 1e-3):
        x = torch.randn(20, 5, generator=generator)
        differentiate(net, x)
        differentiate(twin, x)
        ours.step(rate)
        theirs.param_groups[0]["lr"] = rate
        theirs.step()
    assert all(a.equal(b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))
    for own, other in zip(net.parameters(), twin.parameters(), strict=True):
        for name, moment in ours.state[own].items():  # one parameter has never had a gradient
            assert moment.equal(theirs.state[other].get(name, torch.zeros_like(moment)))


def test_a_process_that_trains_does_not_load_the_compiler():
    code = """
import sys, torch
from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import Plan, Rows, Run
x = torch.randn(20, 3)
Run(
    PSiLONNet(3, 1, width=4, members=(2,)),
    Rows(x, x[:, :1]),
    loss="squared_error",
    penalty=path_norm_penalty,
    reg_strength=1e-3,
    plan=Plan(steps=3, batch_size=10, progress=False),
).train()
print("torch._dynamo" in sys.modules, "sympy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
