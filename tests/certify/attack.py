"""An attacker: looks for inputs in a box that move a network's outputs as far as possible."""

import torch


def attack(net, x, radius, combinations, *, steps=20, restarts=3, seed=0):
    """Return the largest moves found, of shape (rows, count), by projected gradient ascent.

    ``net`` maps (rows, in) to (rows, out) in float64; ``combinations`` is (rows, count, out).
    """
    generator = torch.Generator().manual_seed(seed)
    base = torch.einsum("rco,ro->rc", combinations, net(x)).detach()
    found = torch.zeros_like(base)
    for sign in (1.0, -1.0):
        for k in range(combinations.shape[1]):
            for restart in range(restarts):
                start = torch.rand(x.shape, generator=generator, dtype=x.dtype) * 2 - 1
                if restart == 0:  # corners are where piecewise linear functions end up
                    start = start.sign()
                shift = start * radius
                for step in range(steps):
                    shift = shift.detach().requires_grad_()
                    value = (combinations[:, k] * net(x + shift)).sum(dim=-1)
                    move = sign * (value - base[:, k])
                    found[:, k] = torch.maximum(found[:, k], move.detach())
                    (gradient,) = torch.autograd.grad(move.sum(), shift)
                    rate = 1.0 if step < 3 else 0.5 * (1 - step / steps)
                    stepped = shift + rate * radius * gradient.sign()
                    shift = torch.minimum(torch.maximum(stepped, -radius), radius)
                end = (combinations[:, k] * net(x + shift)).sum(dim=-1)
                found[:, k] = torch.maximum(found[:, k], sign * (end.detach() - base[:, k]))
    return found


def averaged(plain):
    """Return a plain net as a differentiable function of rows, averaged over its members."""

    def run(x):
        h = x.expand(len(plain.layers[0].weight), -1, -1)
        for layer in plain.layers:
            h = layer(h)
        return h.mean(dim=0)

    return run
