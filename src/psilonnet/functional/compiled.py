"""All weights of a network normalised in one compiled call.

After a matrix product the caches are cold, and calling any small kernel costs more than the kernel
does. One call per step for all layers, forward and backward, is what makes compilation pay.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from psilonnet.functional.normalized_linear import pure_gradient, sum_to
from psilonnet.functional.weight_norm import divisor, row_norm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def compiled_weights(
    directions: Sequence[Tensor], lengths: Sequence[Tensor], *, order: int = 1
) -> list[Tensor]:
    """Return ``normalized_weight(v, g)`` of many layers; differentiable once.

    The first call compiles for the given shapes, which takes some seconds and a C++ compiler.

    Parameters
    ----------
    directions : sequence of Tensor of shape (*members, out, pieces, in)
    lengths : sequence of Tensor of shape (*members, out) or (*members, 1)
    order : {1, 2}

    Returns
    -------
    list of Tensor of the shapes of the directions
    """
    return list(_Weights.apply(order, *directions, *lengths))  # type: ignore[no-untyped-call]


def _forward(vs: list[Tensor], gs: list[Tensor], order: int) -> tuple[list[Tensor], list[Tensor]]:
    norms = [divisor(row_norm(v, order=order)) for v in vs]  # as Eq. (1)
    return [v * (g / n)[..., None, None] for v, g, n in zip(vs, gs, norms, strict=True)], norms


def _backward(
    grads: list[Tensor], vs: list[Tensor], gs: list[Tensor], ns: list[Tensor], order: int
) -> tuple[list[Tensor], list[Tensor]]:
    grad_vs, grad_gs = [], []
    for grad, v, g, n in zip(grads, vs, gs, ns, strict=True):
        dot = (grad * v).sum(dim=(-2, -1)) / n  # as Eq. (2)
        grad_vs.append((grad - pure_gradient(v, dot, n, order)) * (g / n)[..., None, None])
        grad_gs.append(sum_to(dot, g))
    return grad_vs, grad_gs


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=False)


class _Weights(Function):
    """The weights of all layers; the compiler sees neither graph nor gradient."""

    @staticmethod
    def forward(ctx: Any, order: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        half = len(tensors) // 2
        vs, gs = ([t.detach() for t in part] for part in (tensors[:half], tensors[half:]))
        weights, norms = _compiled(_forward)(vs, gs, order)
        ctx.order = order
        ctx.save_for_backward(*tensors, *norms)
        return tuple(weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved = [tensor.detach() for tensor in ctx.saved_tensors]
        third = len(saved) // 3
        vs, gs, ns = saved[:third], saved[third : 2 * third], saved[2 * third :]
        grad_vs, grad_gs = _compiled(_backward)(list(grads), vs, gs, ns, ctx.order)
        return None, *grad_vs, *grad_gs
