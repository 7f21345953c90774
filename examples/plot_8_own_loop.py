"""
The penalty in your own training loop
=====================================

A network of ``psilonnet.nn`` is an ordinary module, and ``path_norm_penalty`` is a number with a
gradient. Here three networks are trained in a plain PyTorch loop, with a weak, a middling and a
strong penalty. What the penalty holds down is a proven bound on how far the output can move.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_diabetes

from psilonnet import PSiLONNet, path_norm_penalty

X, y = load_diabetes(return_X_y=True)
rows = torch.tensor(X / X.std(axis=0), dtype=torch.float32)
target = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
train, test = slice(0, 350), slice(350, None)


def trained(strength, steps=400):
    """Return held-out error and bound after every tenth step."""
    net = PSiLONNet(10, 1, width=32, depth=2, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    curve = []
    for step in range(steps):
        error = (net(rows[train]).squeeze(-1) - target[train]).square().mean()
        bound = path_norm_penalty(net)
        optimizer.zero_grad()
        (error + strength * bound).backward()
        optimizer.step()
        if step % 10 == 0:
            with torch.no_grad():
                held_out = (net(rows[test]).squeeze(-1) - target[test]).square().mean()
            curve.append((step, held_out.item(), bound.item()))
    return list(zip(*curve, strict=True))


# %%
# On the left is the error on rows that were not trained on, on the right the bound: by how many
# standard deviations the prediction moves at most when every column moves by one. With the weakest
# penalty the bound grows and grows, and the error does not get smaller for it. The strongest holds
# the bound near 1 and costs a little accuracy.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for strength, color in [(1e-4, "#d1792f"), (1e-2, "#2a6f97"), (1e-1, "#8f5aa8")]:
    step, held_out, bound = trained(strength)
    left.plot(step, held_out, color=color)
    right.plot(step, bound, color=color, label=f"penalty x {strength:g}")
    print(f"penalty x {strength:g}: held-out error {held_out[-1]:.2f}, bound {bound[-1]:.2f}")
left.set(xlabel="step", ylabel="squared error on held-out rows")
right.set(xlabel="step", ylabel="bound", yscale="log")
right.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"], minor=False)
right.set_yticks([], minor=True)
right.legend(frameon=False)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
