"""The fused kernel equals the plain formula, in value and gradient, in all its shapes."""

from functools import partial

import pytest
import torch

from psilonnet.functional import normalized_linear, normalized_weight
from psilonnet.functional.normalized_linear import fused_weight, linear
from sizes import size

OUT, IN = 4, 3
PIECES = [1, 2, 5]
# Many rows take the path that forms the weight, few rows the one that scales activations.
ROWS = [3, 2 * max(PIECES) * IN + 1]
MEMBERS = [(), (3,), (2, 3)]


def plain(x, v, g, bias, order=1):
    y = x @ normalized_weight(v, g, order=order).flatten(-2).mT
    return y if bias is None else y + bias.unsqueeze(-2)


def arguments(rows, pieces, members=(), *, shared_rows=False, per_row=True, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    x = draw(*(() if shared_rows else members), rows, pieces * IN)
    v, g, bias = (
        draw(*members, OUT, pieces, IN),
        draw(*members, OUT if per_row else 1),
        draw(*members, OUT),
    )
    return x, v, g, bias


def gradients(function, tensors, weight):
    tensors = [t.detach().clone().requires_grad_() for t in tensors]
    y = function(*tensors)
    return y, torch.autograd.grad((y * weight).sum(), tensors)


def assert_same(function, tensors, **settings):
    y = plain(*tensors)
    weight = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    ours = gradients(partial(function, **settings), tensors, weight)
    theirs = gradients(partial(plain, **settings), tensors, weight)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("members", MEMBERS)
def test_kernel_equals_the_plain_formula(rows, pieces, members):
    for order in (1, 2):
        for per_row in (True, False):
            assert_same(
                normalized_linear, arguments(rows, pieces, members, per_row=per_row), order=order
            )
        assert_same(
            normalized_linear, arguments(rows, pieces, members, shared_rows=True), order=order
        )


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("pieces", [2, 5])
def test_kernel_shares_ties_like_the_plain_formula(rows, pieces):
    x, v, g, bias = arguments(rows, pieces)
    v = v[:, :1].expand_as(v).contiguous()  # all pieces equal, as at initialisation
    v[:, 1, 2:] *= -1  # and equal in size only
    v[0] = 0  # and a zero row
    v[1, :, 1] = 0  # and zero entries
    assert_same(normalized_linear, (x, v, g, bias))
    v[0] = 1  # the L2 norm of a zero row has no derivative; see below
    assert_same(normalized_linear, (x, v, g, bias), order=2)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("pieces", PIECES)
def test_kernel_gradcheck(rows, pieces):
    tensors = [t.requires_grad_() for t in arguments(rows, pieces)]
    for order in (1, 2):
        kernel = partial(normalized_linear, order=order)
        assert torch.autograd.gradcheck(kernel, tensors)
        # Along random directions in the everyday run, in all of them in the long one.
        fast = size(True, long=False)
        assert torch.autograd.gradgradcheck(kernel, tensors, fast_mode=fast)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("pieces", PIECES)
def test_kernel_under_vmap_and_func_grad_equals_leading_axes(rows, pieces):
    x, v, g, bias = arguments(rows, pieces, (3,), shared_rows=True)

    def loss(v, g, bias, x):
        return normalized_linear(x, v, g, bias).square().sum()

    axes = (0, 0, 0, None)
    value = torch.func.vmap(loss, axes)(v, g, bias, x)
    torch.testing.assert_close(value, plain(x, v, g, bias).square().sum(dim=(-2, -1)))
    _, (_, *expected) = gradients(plain, (x, v, g, bias), 2 * plain(x, v, g, bias))
    actual = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)), axes)(v, g, bias, x)
    torch.testing.assert_close(actual, tuple(expected))
    inside = torch.func.grad(lambda v: torch.func.vmap(loss, axes)(v, g, bias, x).sum())(v)
    torch.testing.assert_close(inside, expected[0])


@pytest.mark.parametrize("rows", ROWS)
def test_kernel_compiles_whole_and_exports(rows):
    tensors = arguments(rows, 2)

    class Module(torch.nn.Module):
        def forward(self, x, v, g, bias):
            return normalized_linear(x, v, g, bias)

    whole = torch.compile(normalized_linear, fullgraph=True, backend="aot_eager")
    assert_same(whole, tensors)
    exported = torch.export.export(Module(), tensors).module()
    torch.testing.assert_close(exported(*tensors), plain(*tensors))


@pytest.mark.parametrize("shape", [(2 * IN,), (2, 3, 2 * IN), (0, 2 * IN)])
def test_kernel_takes_any_leading_shape_of_rows(shape):
    _, v, g, bias = arguments(3, 2)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    expected = x @ normalized_weight(v, g).flatten(-2).mT + bias
    torch.testing.assert_close(normalized_linear(x, v, g, bias), expected)


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("order", [1, 2])
def test_kernel_takes_a_single_row(members, order):
    x, v, g, bias = arguments(3, 2, members, shared_rows=True)
    for b in (bias, None):
        expected = plain(x, v, g, b, order)[..., 0, :]
        torch.testing.assert_close(normalized_linear(x[0], v, g, b, order=order), expected)
        weight = normalized_weight(v, g, order=order)
        torch.testing.assert_close(linear(x[0], weight, b), expected)


def test_kernel_without_bias():
    x, v, g, _ = arguments(3, 2, (3,))
    torch.testing.assert_close(normalized_linear(x, v, g), plain(x, v, g, None))


def test_kernel_changes_none_of_its_arguments():
    tensors = arguments(3, 2)
    before = [t.clone() for t in tensors]
    y = normalized_linear(*[t.requires_grad_() for t in tensors])
    y.sum().backward()
    for tensor, old in zip(tensors, before, strict=True):
        assert tensor.equal(old)


@pytest.mark.parametrize("order", [1, 2])
def test_fused_weight_is_the_weight(order):
    _, v, g, _ = arguments(3, 2, (3,))
    ours, theirs = (
        gradients(partial(make, order=order), (v, g), torch.ones_like(v).cumsum(-1))
        for make in (fused_weight, normalized_weight)
    )
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("pieces", PIECES)
def test_kernel_survives_zero_rows(order, pieces):
    x, v, g, bias = arguments(3, pieces)
    v = torch.zeros_like(v).requires_grad_()
    y = normalized_linear(x, v, g, bias, order=order)
    y.sum().backward()
    assert y.equal(bias.expand_as(y))
    assert v.grad.isfinite().all()
