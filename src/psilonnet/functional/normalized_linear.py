"""The normalised linear map ``y = W x + b``, ``W = g V / ||V||``, as one fused kernel.

Autograd of the plain formula passes over the weights about ten times. Two exact rearrangements
need fewer passes, and the shapes decide between them:

- rows of a batch are many: form W in one pass, and an ordinary linear map follows;
- rows are few: ``y = (V x) (g / ||V||) + b``. W is never formed, and what normalisation adds
  passes over arrays of shape (rows, out), but for the norm (forward) and its gradient (backward).
  The latter is written into the buffer in which the product for the weight gradient accumulates.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from psilonnet.functional.pieces import gradient_of_two, pure_gradient_of_two
from psilonnet.functional.weight_norm import divisor, norm_gradient, normalized_weight, row_norm

if TYPE_CHECKING:
    from collections.abc import Sequence


def normalized_linear(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor | None = None,
    *,
    order: int = 1,
) -> Tensor:
    """Return ``x W' + b`` with ``W = normalized_weight(v, g)``, in fewer passes.

    Parameters
    ----------
    x : Tensor of shape (..., pieces * in), or (*members, rows, pieces * in)
        Flattened pieces. With member axes, rows of shape (rows, pieces * in) are shared by all, and
        so is a single row of shape (pieces * in,).
    v : Tensor of shape (*members, out, pieces, in)
    g : Tensor of shape (*members, out) or (*members, 1)
    bias : Tensor of shape (*members, out), optional
    order : {1, 2}

    Returns
    -------
    Tensor of shape (..., out), or (*members, rows, out), or (*members, out) for a single row

    Examples
    --------
    >>> v, g = torch.tensor([[[1.0, -3.0]]]), torch.tensor([2.0])
    >>> normalized_linear(torch.tensor([[4.0, 0.0]]), v, g)
    tensor([[2.]])
    """
    if torch.compiler.is_compiling():
        return linear(x, normalized_weight(v, g, order=order), bias)
    if bias is None:
        bias = v.new_zeros(v.shape[:-2])
    members, flat = v.shape[:-3], prod(v.shape[:-3])
    if flat > 1 and x.dim() > 2:
        x = x.expand(*members, *x.shape[-2:]).reshape(flat, *x.shape[-2:])
        y = _fused(x, v.flatten(0, -4), g.reshape(flat, -1), bias.reshape(flat, -1), order)
        return y.reshape(*members, *y.shape[-2:])
    if members:  # the same rows for all members: their outputs are outputs of one map
        rows = x.reshape(-1, x.shape[-1])
        lengths = g.flatten() if flat == 1 else g.expand(bias.shape).flatten()
        y = _fused(rows, v.flatten(0, -3), lengths, bias.flatten(), order)
        y = y.reshape(len(rows), *bias.shape).movedim(0, -2)
        return y if x.dim() > 1 else y.squeeze(-2)
    y = _fused(x.reshape(-1, x.shape[-1]), v, g, bias, order)
    return y.reshape(*x.shape[:-1], y.shape[-1])


def fused_weight(v: Tensor, g: Tensor, *, order: int = 1) -> Tensor:
    """Return ``normalized_weight(v, g)``, in fewer passes.

    Parameters
    ----------
    v, g, order
        As in :func:`normalized_linear`.

    Returns
    -------
    Tensor of shape (*members, out, pieces, in)
    """
    if torch.compiler.is_compiling():
        return normalized_weight(v, g, order=order)
    weight: Tensor
    weight, _ = _Weight.apply(v, g, order)  # type: ignore[no-untyped-call]
    return weight


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return ``x W' + b`` for a weight of shape (*members, out, pieces, in)."""
    weight = weight.flatten(-2)
    if weight.dim() == 2:
        return functional.linear(x, weight, bias)
    product = x @ weight.mT
    if bias is None:
        return product
    return product + (bias.unsqueeze(-2) if x.dim() > 1 else bias)


def _fused(x: Tensor, v: Tensor, g: Tensor, bias: Tensor, order: int) -> Tensor:
    """Choose the rearrangement with less to pass over; at most one member axis."""
    if x.shape[-2] > 2 * v.shape[-2] * v.shape[-1]:
        return linear(x, fused_weight(v, g, order=order), bias)
    y: Tensor = _Linear.apply(x, v, g, bias, order)[0]  # type: ignore[no-untyped-call]
    return y


def _norm(v: Tensor, order: int) -> Tensor:
    """Return the norm of each row, 1 for a zero row."""
    if order == 1 and v.shape[-2] == 2:  # without a third temporary
        first, second = v.abs().unbind(-2)
        return divisor(torch.maximum(first, second, out=first).sum(dim=-1))
    return divisor(row_norm(v, order=order))


def _gradient(v: Tensor, factor: Tensor, norm: Tensor, order: int) -> Tensor:
    """Return ``factor * norm_gradient(v)`` in a fresh tensor."""
    if order == 1 and v.shape[-2] == 2:
        return gradient_of_two(v, factor[..., None, None])
    return pure_gradient(v, factor, norm, order)


def pure_gradient(v: Tensor, factor: Tensor, norm: Tensor, order: int) -> Tensor:
    """Return ``factor * norm_gradient(v)`` as one expression, which a compiler can fuse."""
    factor = (factor if order == 1 else factor / norm)[..., None, None]
    if v.shape[-2] == 2 and order == 1:
        return pure_gradient_of_two(v, factor)
    base = v.sgn() if order == 1 else v
    if v.shape[-2] == 1:
        return base * factor
    if v.shape[-2] == 2:
        first, second = v.abs().unbind(-2)
        lead = (first - second).sgn()  # a tie gives half to each
        return base * torch.stack((1 + lead, 1 - lead), dim=-2) * (0.5 * factor)
    magnitude = v.abs()
    largest = magnitude == magnitude.amax(dim=-2, keepdim=True)
    return base * largest * (factor / largest.sum(dim=-2, keepdim=True))


class _Weight(Function):
    """``W = g v / n`` and the norm n, which the backward pass uses again."""

    @staticmethod
    def forward(v: Tensor, g: Tensor, order: int) -> tuple[Tensor, Tensor]:
        n = _norm(v, order)
        return v * (g / n)[..., None, None], n

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, ...]
    ) -> None:
        v, g, ctx.order = inputs
        ctx.save_for_backward(v, g, output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor, Tensor, None]:
        v, g, n = ctx.saved_tensors
        grad_w, grad_n = gradients
        if grad_w is None:  # in a second derivative only
            grad_w = torch.zeros_like(v)
        scale = (g / n)[..., None, None]
        # >>> as Eq. (2), for the gradient of any loss
        dot = (grad_w * v).sum(dim=(-2, -1)) / n
        if torch.is_grad_enabled():  # torch.func or a second derivative: nothing in place
            normal = norm_gradient(v, order=ctx.order)
            grad_v = scale * (grad_w - normal * dot[..., None, None])
        else:
            grad_v = _gradient(v, dot, n, ctx.order)
            torch.sub(grad_w, grad_v, out=grad_v).mul_(scale)
        # <<<
        if grad_n is not None:
            normal = norm_gradient(v, order=ctx.order)
            grad_v = grad_v + normal * grad_n[..., None, None]
        return grad_v, sum_to(dot, g), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        *tensors, order = inputs
        tensors = _batched(info, in_dims, tensors)
        return _Weight.apply(*tensors, order), (0, 0)  # type: ignore[no-untyped-call]


class _Linear(Function):
    """``y = z s + b`` with ``z = V x`` and ``s = g / n``; z, s and n are for the backward pass.

    Small operations cost much where a matrix product has just emptied the caches, so each is
    done once.
    """

    @staticmethod
    def forward(
        x: Tensor, v: Tensor, g: Tensor, bias: Tensor, order: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        n = _norm(v, order)
        s = g / n
        z = linear(x, v, None)
        return torch.addcmul(_across_rows(bias), z, _across_rows(s)), z, s, n

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor, int], output: tuple[Tensor, ...]
    ) -> None:
        x, v, g, _, ctx.order = inputs
        ctx.save_for_backward(x, v, g, *output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        x, v, g, z, s, n = ctx.saved_tensors
        grad_y = gradients[0]
        if torch.is_grad_enabled() or grad_y is None:
            return _pure_backward(ctx, gradients)
        grad_z = grad_y * _across_rows(s)
        grad_g = (grad_y * z).sum(dim=-2) / n  # of each row
        grad_x = grad_z @ v.flatten(-2) if ctx.needs_input_grad[0] else None
        # The part along the norm is the buffer in which the product accumulates.
        grad_v = _gradient(v, grad_g * s.neg(), n, ctx.order)
        accumulate = torch.Tensor.addmm_ if v.dim() == 3 else torch.Tensor.baddbmm_
        accumulate(grad_v.flatten(-2), grad_z.mT, x)
        return grad_x, grad_v, sum_to(grad_g, g), grad_y.sum(dim=-2), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        *tensors, order = inputs
        tensors = _batched(info, in_dims, tensors)
        return _Linear.apply(*tensors, order), (0, 0, 0, 0)  # type: ignore[no-untyped-call]


def _pure_backward(ctx: Any, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Return the gradients of ``_Linear`` by differentiable operations: nothing in place."""
    x, v, g, z, _, n = ctx.saved_tensors
    grad_y, grad_z, grad_s, grad_n = (
        torch.zeros_like(like) if gradient is None else gradient
        for gradient, like in zip(gradients, (z, z, n, n), strict=True)
    )
    s = g / n
    grad_s = grad_s + (grad_y * z).sum(dim=-2)
    grad_z = grad_z + grad_y * _across_rows(s)
    grad_n = grad_n - grad_s * s / n
    grad_v = (grad_z.mT @ x).reshape(v.shape)
    grad_v = grad_v + norm_gradient(v, order=ctx.order) * grad_n[..., None, None]
    return grad_z @ v.flatten(-2), grad_v, sum_to(grad_s / n, g), grad_y.sum(dim=-2), None


def _across_rows(per_output: Tensor) -> Tensor:
    """Give a tensor with one number per output an axis for the rows of a batch."""
    return per_output if per_output.dim() == 1 else per_output.unsqueeze(-2)


def sum_to(rows: Tensor, g: Tensor) -> Tensor:
    """Add up what belongs to one shared length."""
    return rows.sum(dim=-1, keepdim=True) if g.shape[-1] != rows.shape[-1] else rows


def _batched(info: Any, in_dims: tuple[int | None, ...], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Bring the mapped axis of each input to the front, where the kernel takes members."""
    return [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(inputs, in_dims, strict=False)
    ]
