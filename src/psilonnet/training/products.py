"""Products of matrices into kept memory, in float32 or rounded to bfloat16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Multiply(Protocol):
    """Writes ``a @ b``, with a bias on every row if there is one, into ``out``."""

    def __call__(self, a: Tensor, b: Tensor, out: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return ``out``; all have shape (members, ., .)."""


def _exact(a: Tensor, b: Tensor, out: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply in the precision of the matrices."""
    torch.bmm(a, b, out=out)
    return out if bias is None else out.add_(bias)  # baddbmm would pass over it twice


def _rounded(a: Tensor, b: Tensor, out: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply in bfloat16, as ``torch.autocast`` does; what is kept stays as precise as it was."""
    product = torch.bmm(a.bfloat16(), b.bfloat16())
    return out.copy_(product) if bias is None else torch.add(bias, product, out=out)


def multiply_in(precision: str) -> Multiply:
    """Return how to multiply under a plan's precision on this processor."""
    return _rounded if precision == "medium" and _has_bfloat16() else _exact


def _has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 itself; else rounding only costs time."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # not in every build of torch
    return any(getattr(torch.cpu, name, bool)() for name in names)
