"""All weights in one call equal the plain formula, in value and gradient.

A compilation takes half a minute: the everyday run takes the same functions as they are written.
"""

import pytest
import torch

from psilonnet.functional import compiled as compiled_module
from psilonnet.functional import normalized_weight
from psilonnet.functional.compiled import compiled_weights

SHAPES = [(6, 1, 4), (5, 2, 6), (3, 5, 4)]  # (out, pieces, in) of three layers


def layers(members, *, ties, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    directions = [draw(*members, *shape) for shape in SHAPES]
    if ties:
        directions = [v[..., :1, :].expand_as(v).contiguous() for v in directions]
    lengths = [draw(*members, 1), draw(*members, 1), draw(*members, 3)]
    return directions, lengths


def gradients(make, directions, lengths):
    tensors = [t.clone().requires_grad_() for t in (*directions, *lengths)]
    half = len(directions)
    weights = make(tensors[:half], tensors[half:])
    loss = sum((w * torch.arange(w.numel()).view_as(w).sin()).sum() for w in weights)
    return list(weights), torch.autograd.grad(loss, tensors)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler imports torch.jit
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("members", "ties"), [((), False), ((), True), ((3,), False)])
@pytest.mark.parametrize("compiling", [False, pytest.param(True, marks=pytest.mark.long)])
def test_compiled_weights_equal_the_plain_formula(order, members, ties, compiling, monkeypatch):
    if not compiling:
        monkeypatch.setattr(compiled_module, "_compiled", lambda function: function)

    def plain(vs, gs):
        return [normalized_weight(v, g, order=order) for v, g in zip(vs, gs, strict=True)]

    def compiled(vs, gs):
        return compiled_weights(vs, gs, order=order)

    tensors = layers(members, ties=ties)
    torch.testing.assert_close(
        gradients(compiled, *tensors), gradients(plain, *tensors), rtol=1e-10, atol=1e-12
    )
