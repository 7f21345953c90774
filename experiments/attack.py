"""An attacker: looks for inputs in a box that move a network's outputs as far as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from psilonnet.nn import PlainNet


def attack(
    net: Callable[[Tensor], Tensor],
    x: Tensor,
    radius: Tensor,
    combinations: Tensor,
    *,
    signs: tuple[float, ...] = (1.0, -1.0),
    steps: int = 20,
    restarts: int = 3,
    seed: int = 0,
) -> Tensor:
    """Return the largest moves found, of shape (rows, count), by projected gradient ascent.

    Parameters
    ----------
    net : callable
        Maps (rows, in) to (rows, out) in float64.
    x, radius : Tensor of shape (rows, in)
    combinations : Tensor of shape (rows, count, out)
    signs : tuple of float
        Up and down by default; ``(1.0,)`` counts moves up only.
    steps, restarts, seed : int
    """
    generator = torch.Generator().manual_seed(seed)
    base = torch.einsum("rco,ro->rc", combinations, net(x)).detach()
    found = torch.zeros_like(base)
    for k in range(combinations.shape[1]):
        for sign in signs:
            for restart in range(restarts):
                start = torch.rand(x.shape, generator=generator, dtype=x.dtype) * 2 - 1
                # Corners are where piecewise linear functions end up.
                shift = (start.sign() if restart == 0 else start) * radius
                climbed = _climb(net, x, shift, radius, sign * combinations[:, k], steps)
                found[:, k] = torch.maximum(found[:, k], climbed - sign * base[:, k])
    return found


def _climb(
    net: Callable[[Tensor], Tensor],
    x: Tensor,
    shift: Tensor,
    radius: Tensor,
    combination: Tensor,
    steps: int,
) -> Tensor:
    """Return the largest value of a combination of outputs met on the way up."""
    best = torch.full((len(x),), -torch.inf, dtype=x.dtype)
    for step in range(steps):
        shift = shift.detach().requires_grad_()
        value = (combination * net(x + shift)).sum(dim=-1)
        best = torch.maximum(best, value.detach())
        (gradient,) = torch.autograd.grad(value.sum(), shift)
        rate = 1.0 if step < 3 else 0.5 * (1 - step / steps)
        stepped = shift + rate * radius * gradient.sign()
        shift = torch.minimum(torch.maximum(stepped, -radius), radius)
    end = (combination * net(x + shift)).sum(dim=-1).detach()
    return torch.maximum(best, end)


def averaged(net: PlainNet | AveragedNet) -> Callable[[Tensor], Tensor]:
    """Return a net as a differentiable function of rows, averaged over its members."""
    whole = AveragedNet.of(net)

    def run(x: Tensor) -> Tensor:
        total = x.new_zeros(len(x), whole.outputs)
        for part in whole.parts:
            h = part.see(x).expand(part.members, -1, -1)
            for layer in part.net.layers:
                h = layer(h)
            total = total + torch.einsum("m,mro->ro", part.weight, h)
        return total

    return run
