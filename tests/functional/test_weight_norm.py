import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import soft_threshold_row
from psilonnet.functional import (
    mixed_weight,
    normalized_weight,
    oblique_project,
    projected_weight,
    row_norm,
)

quick = settings(derandomize=True, deadline=None, max_examples=40)
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(
    st.lists(st.integers(1, 3), max_size=2), st.integers(1, 4), st.integers(1, 8), st.integers(1, 6)
).map(lambda s: (*s[0], *s[1:]))  # (..., out, pieces, in)
orders = pytest.mark.parametrize("order", [1, 2])


def normal(shape, dtype=torch.float64, seed=0, scale=1.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).normal(size=shape)).to(dtype)


def norm_loops(row, order):
    """Return ``|| max_t |row[t, .]| ||`` of a row (pieces, in), entry by entry."""
    largest = [max(abs(float(c)) for c in column) for column in row.T]
    return sum(largest) if order == 1 else sum(c**2 for c in largest) ** 0.5


def over_rows(function, v):
    """Apply a function of a row (pieces, in) to every row of a NumPy array."""
    rows = [function(row) for row in v.reshape(-1, *v.shape[-2:])]
    return np.stack(rows).reshape(*v.shape[:-2], *np.shape(rows[0]))


@given(shape=shapes, seed=seeds)
@quick
@orders
def test_row_norm_equals_the_loops(order, shape, seed):
    v = normal(shape, seed=seed)
    expected = over_rows(lambda row: norm_loops(row, order), v.numpy())
    assert row_norm(v, order=order).shape == shape[:-2]
    np.testing.assert_allclose(row_norm(v, order=order).numpy(), expected, rtol=1e-14)


def test_row_norm_shares_the_gradient_of_ties_evenly():
    v = torch.tensor([[2.0, -1.0, 4.0], [-2.0, 3.0, 4.0], [1.0, 3.0, 4.0]], requires_grad=True)
    row_norm(v).backward()
    third = 1 / 3
    expected = [[0.5, 0.0, third], [-0.5, 0.5, third], [0.0, 0.5, third]]
    torch.testing.assert_close(v.grad, torch.tensor(expected))


@given(shape=shapes, dtype=dtypes, seed=seeds, shared=st.booleans())
@quick
@orders
def test_normalized_weight_has_rows_of_the_given_length(order, shape, dtype, seed, shared):
    v = normal(shape, dtype, seed)
    g = normal((*shape[:-3], 1 if shared else shape[-3]), dtype, [seed, 1])
    w = normalized_weight(v, g, order=order)
    assert (w.shape, w.dtype) == (v.shape, dtype)
    expected = g.abs().expand(shape[:-2])
    torch.testing.assert_close(
        row_norm(w, order=order), expected, rtol=32 * torch.finfo(dtype).eps, atol=0
    )


@given(shape=shapes, seed=seeds)
@quick
@orders
def test_normalized_weight_equals_the_loops(order, shape, seed):
    v, g = normal(shape, seed=seed), normal(shape[:-2], seed=[seed, 1])
    expected = over_rows(lambda row: row / norm_loops(row, order), v.numpy())
    expected *= g.numpy()[..., None, None]
    np.testing.assert_allclose(
        normalized_weight(v, g, order=order).numpy(), expected, rtol=1e-13, atol=1e-300
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_normalized_weight_does_not_see_the_scale_of_the_direction(scale, dtype):
    v, g = normal((4, 2, 5), dtype), normal((4,), dtype, 1)
    torch.testing.assert_close(normalized_weight(scale * v, g), normalized_weight(v, g))


@orders
def test_normalized_weight_of_a_zero_row_is_zero_with_a_finite_gradient(order):
    v = normal((3, 2, 4))
    v[1] = 0
    v.requires_grad_()
    g = normal((3,), seed=1).requires_grad_()
    w = normalized_weight(v, g, order=order)
    assert (w[1] == 0).all()
    (w * normal((3, 2, 4), seed=2)).sum().backward()
    assert v.grad.isfinite().all()
    assert g.grad.isfinite().all()
    assert g.grad[1] == 0


@orders
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_normalized_weight_has_the_right_gradient_away_from_ties(order, pieces):
    v = normal((2, 3, pieces, 4)).requires_grad_()
    for g in (normal((2, 3), seed=1), normal((2, 1), seed=1)):
        assert torch.autograd.gradcheck(
            lambda a, b: normalized_weight(a, b, order=order), (v, g.requires_grad_())
        )


def test_normalized_weight_gradient_at_ties_by_hand():
    """Looks-linear start: with ``v+ = v- = (1, 3)`` the norm is 4, its gradient 1/2 each."""
    v = torch.tensor([[[1.0, 3.0], [1.0, 3.0]]], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([[[2.0, 1.0], [0.0, -1.0]]], dtype=torch.float64)
    (normalized_weight(v, torch.tensor([8.0], dtype=torch.float64)) * x).sum().backward()
    # g/N (x - (v . x)/N * grad N) = 2 (x - 2/4 * 1/2)
    expected = torch.tensor([[[3.5, 1.5], [-0.5, -2.5]]], dtype=torch.float64)
    torch.testing.assert_close(v.grad, expected)


@given(shape=shapes, seed=seeds, tied=st.booleans())
@quick
def test_normalized_weight_gradient_is_the_oblique_projection(shape, seed, tied):
    """Eq. (2), also at ties."""
    v, x = normal(shape, seed=seed), normal(shape, seed=[seed, 1])
    if tied:
        v = v[..., :1, :].expand(shape).clone()
    v.requires_grad_()
    g = normal(shape[:-2], seed=[seed, 2])
    (gradient,) = torch.autograd.grad((normalized_weight(v, g) * x).sum(), v)
    expected = (g / row_norm(v))[..., None, None] * oblique_project(v.detach(), x)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)


@given(width=st.integers(1, 6), seed=seeds)
@quick
def test_oblique_project_of_one_piece_is_the_matrix_of_the_paper(width, seed):
    w, x = (np.random.default_rng([seed, k]).normal(size=width) for k in range(2))
    matrix = np.eye(width) - np.outer(np.sign(w), w) / np.abs(w).sum()
    result = oblique_project(torch.from_numpy(w)[None], torch.from_numpy(x)[None])
    np.testing.assert_allclose(result[0].numpy(), matrix @ x, rtol=1e-12, atol=1e-12)


@given(shape=shapes, dtype=dtypes, seed=seeds)
@quick
def test_oblique_project_is_orthogonal_to_the_weight_and_idempotent(shape, dtype, seed):
    w, x = normal(shape, dtype, seed), normal(shape, dtype, [seed, 1])
    projected = oblique_project(w, x)
    tolerance = 512 * torch.finfo(dtype).eps
    size = row_norm(w) * (1 + x.abs().sum(dim=(-2, -1)))
    assert ((w * projected).sum(dim=(-2, -1)).abs() <= tolerance * size).all()
    again = oblique_project(w, projected)
    assert ((again - projected).abs() <= tolerance * size[..., None, None].clamp(min=1)).all()


def test_oblique_project_of_a_zero_weight_is_the_identity():
    x = normal((2, 3))
    assert torch.equal(oblique_project(torch.zeros(2, 3, dtype=x.dtype), x), x)


@given(shape=shapes, seed=seeds, mix=st.floats(0, 1))
@quick
def test_mixed_weight_equals_the_loops(shape, seed, mix):
    v, g = normal(shape, seed=seed, scale=2.0), normal(shape[:-2], seed=[seed, 1])
    expected = over_rows(
        lambda row: (1 - mix) * row / norm_loops(row, 1) + mix * soft_threshold_row(row), v.numpy()
    )
    expected *= g.numpy()[..., None, None]
    np.testing.assert_allclose(mixed_weight(v, g, mix).numpy(), expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mixed_weight_keeps_the_norm_of_every_row_on_2000_cases(dtype):
    rng = np.random.default_rng(0)
    for case in range(200):
        pieces, width = int(rng.integers(1, 9)), int(rng.integers(1, 30))
        scale = 10.0 ** rng.uniform(-3, 3, size=(10, 1, 1))
        v = torch.from_numpy(scale * rng.normal(size=(10, pieces, width))).to(dtype)
        v = torch.where(torch.from_numpy(rng.random(v.shape) < 0.2), 0, v)
        v[..., 0] = v[..., 0].abs() + 1e-3  # no zero rows
        g = normal((10,), dtype, case)
        mix = float(rng.choice([0.0, 1.0, rng.random()]))
        torch.testing.assert_close(
            row_norm(mixed_weight(v, g, mix)), g.abs(), rtol=100 * torch.finfo(dtype).eps, atol=0
        )


def test_mixed_weight_ends_are_normalisation_and_projection():
    v, g = normal((3, 2, 6), scale=3.0), normal((1,), seed=1)
    assert torch.equal(mixed_weight(v, g, 0.0), normalized_weight(v, g))
    assert torch.equal(mixed_weight(v, g, torch.tensor(1.0)), projected_weight(v, g))
    assert (mixed_weight(v, g, 1.0) == 0).any()
    assert not (mixed_weight(v, g, 0.5) == 0).any()


def test_mixed_weight_has_the_right_gradient_away_from_kinks():
    inputs = (normal((3, 2, 4), scale=2.0), normal((3,), seed=1), torch.tensor(0.3).double())
    assert torch.autograd.gradcheck(mixed_weight, tuple(t.requires_grad_() for t in inputs))
