"""The largest piece of each coordinate, on which norms, bounds and projections rest."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def largest_piece(v: Tensor) -> Tensor:
    """Return ``max_t |v[t, .]|``; ties share the gradient evenly.

    Parameters
    ----------
    v : Tensor of shape (..., pieces, in)

    Returns
    -------
    Tensor of shape (..., in)

    Examples
    --------
    >>> largest_piece(torch.tensor([[1.0, -2.0], [-3.0, 0.5]]))
    tensor([3., 2.])
    """
    if v.shape[-2] == 1:
        return v.squeeze(-2).abs()
    if v.shape[-2] == 2 and not torch.compiler.is_compiling():
        largest: Tensor = _LargestOfTwo.apply(v)  # type: ignore[no-untyped-call]
        return largest
    return v.abs().amax(dim=-2)


def gradient_of_two(v: Tensor, factor: Tensor) -> Tensor:
    """Return ``factor`` times the gradient of the larger of two magnitudes, in a fresh tensor.

    It is that of ``max(|a|, |b|) = (|a + b| + |a - b|) / 2``, which shares ties evenly without a
    mask. The factor broadcasts against (..., 2, in).
    """
    gradient = torch.empty_like(v, memory_format=torch.contiguous_format)
    a, b = v.unbind(-2)
    plus, minus = gradient.unbind(-2)
    torch.add(a, b, out=plus)
    torch.sub(a, b, out=minus)
    gradient.sgn_().mul_(0.5 * factor)
    plus.add_(minus)
    torch.sub(plus, minus, alpha=2, out=minus)
    return gradient


def pure_gradient_of_two(v: Tensor, factor: Tensor) -> Tensor:
    """Return the same as one expression, for compilers and higher derivatives."""
    a, b = v.unbind(-2)
    plus, minus = (a + b).sgn(), (a - b).sgn()
    return torch.stack((plus + minus, plus - minus), dim=-2) * (0.5 * factor)


class _LargestOfTwo(Function):
    """``max(|a|, |b|)``: autograd's own maximum makes masks and is several times slower."""

    @staticmethod
    def forward(v: Tensor) -> Tensor:
        first, second = v.abs().unbind(-2)
        return torch.maximum(first, second)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        gradient = pure_gradient_of_two if torch.is_grad_enabled() else gradient_of_two
        return gradient(v, grad.unsqueeze(-2))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], v: Tensor) -> tuple[Tensor, int]:
        return _LargestOfTwo.apply(v.movedim(in_dims[0], 0)), 0  # type: ignore[no-untyped-call]
