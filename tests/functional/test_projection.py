import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import (
    bisection_threshold,
    nearest_row_distance,
    paper_sign_projection,
    soft_threshold_row,
)
from psilonnet.functional import (
    project_ball,
    project_sphere,
    projected_weight,
    row_norm,
    threshold,
)

quick = settings(derandomize=True, deadline=None, max_examples=50)
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1e3])
shapes = st.tuples(
    st.lists(st.integers(1, 3), max_size=3), st.integers(1, 8), st.integers(1, 8)
).map(lambda s: (*s[0], *s[1:]))  # (..., pieces, in)
widths = st.integers(1, 12)
both = pytest.mark.parametrize("project", [project_sphere, project_ball])


def normal(shape, dtype=torch.float64, seed=0, scale=1.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).normal(size=shape)).to(dtype)


def oracle(v, *, ball):
    rows = v.numpy().reshape(-1, *v.shape[-2:])
    return np.stack([soft_threshold_row(row, ball=ball) for row in rows]).reshape(v.shape)


@given(width=widths, seed=seeds, scale=scales)
@quick
def test_threshold_equals_bisection(width, seed, scale):
    w = normal((3, width), seed=seed, scale=scale)
    expected = [bisection_threshold(np.abs(row)) for row in w.numpy()]
    assert threshold(w).shape == (3,)
    np.testing.assert_allclose(threshold(w).numpy(), expected, rtol=1e-12, atol=1e-12)


@given(width=widths, dtype=dtypes, seed=seeds)
@quick
def test_threshold_is_negative_exactly_inside_the_ball(width, dtype, seed):
    w = normal((width,), dtype, seed)
    w = w / w.abs().sum()
    assert threshold(0.9 * w) < 0 < threshold(1.1 * w)


@given(shape=shapes, seed=seeds, scale=scales)
@quick
@both
def test_projection_equals_the_oracle(project, shape, seed, scale):
    v = normal(shape, seed=seed, scale=scale)
    expected = oracle(v, ball=project is project_ball)
    np.testing.assert_allclose(project(v).numpy(), expected, rtol=0, atol=1e-12)


@given(shape=shapes, dtype=dtypes, seed=seeds, scale=scales)
@quick
def test_projections_have_the_right_norm(shape, dtype, seed, scale):
    v = normal(shape, dtype, seed, scale)
    tolerance = 16 * shape[-1] * torch.finfo(dtype).eps
    assert project_sphere(v).dtype == project_ball(v).dtype == dtype
    assert ((row_norm(project_sphere(v)) - 1).abs() <= tolerance).all()
    expected = row_norm(v).clamp(max=1)
    assert ((row_norm(project_ball(v)) - expected).abs() <= tolerance).all()


@given(shape=shapes, dtype=dtypes, seed=seeds, scale=scales)
@quick
@both
def test_projection_keeps_signs_and_is_idempotent(project, shape, dtype, seed, scale):
    p = project(normal(shape, dtype, seed, scale))
    assert (p * normal(shape, dtype, seed) >= 0).all()
    torch.testing.assert_close(project(p), p, rtol=0, atol=32 * torch.finfo(dtype).eps)


@given(shape=shapes, dtype=dtypes, seed=seeds)
@quick
def test_project_ball_leaves_its_rows_to_the_last_bit(shape, dtype, seed):
    v = normal(shape, dtype, seed)
    v = 0.99 * v / row_norm(v)[..., None, None]
    assert torch.equal(project_ball(v), v)


def test_project_sphere_row_norms_are_one_on_2000_cases():
    rng = np.random.default_rng(0)
    for _ in range(100):
        pieces, width = int(rng.integers(1, 9)), int(rng.integers(1, 50))
        scale = 10.0 ** rng.uniform(-4, 4, size=(20, 1, 1))
        v = torch.from_numpy(scale * rng.normal(size=(20, pieces, width)))
        np.testing.assert_allclose(row_norm(project_sphere(v)).numpy(), 1, rtol=0, atol=1e-13)


# --- one piece: the Euclidean projection ------------------------------------------------------


@given(width=widths, seed=seeds, scale=scales)
@quick
@both
def test_projection_of_one_piece_satisfies_kkt(project, width, seed, scale):
    """``v - p = tau sign(p)`` on the support, ``|v| <= tau`` off it, one tau for all."""
    v = normal((1, width), seed=seed, scale=scale)
    p = project(v)
    support = p != 0
    multiplier = ((v - p) * p.sign())[support]
    tau = multiplier.mean()
    tolerance = 1e-12 * max(1.0, scale)
    assert ((multiplier - tau).abs() <= tolerance).all()
    assert (v[~support].abs() <= tau + tolerance).all()
    if project is project_ball:
        assert tau >= -tolerance
        assert tau * (row_norm(p) - 1) == pytest.approx(0, abs=1e-10 * max(1.0, scale))


@given(width=widths, seed=seeds, scale=st.sampled_from([0.05, 0.3, 1.0, 3.0]))
@quick
@both
def test_projection_of_one_piece_is_nearer_than_random_points_of_the_set(
    project, width, seed, scale
):
    v = normal((1, width), seed=seed, scale=scale)
    p = project(v)
    near = p + 0.3 * normal((300, 1, width), seed=[seed, 1])
    rivals = near / row_norm(near)[..., None, None]
    if project is project_ball:
        rivals = rivals * torch.from_numpy(np.random.default_rng(seed).random((300, 1, 1)))
    assert (((rivals - v) ** 2).sum(dim=(-2, -1)) >= ((p - v) ** 2).sum() - 1e-12).all()


@given(width=widths, seed=seeds, scale=st.sampled_from([0.01, 1.0, 5.0]))
@quick
def test_project_sphere_of_one_piece_has_the_closed_form_jacobian(width, seed, scale):
    """``I - s s' / |support|`` on the support, with signs s, and zero off it."""
    v = normal((1, width), seed=seed, scale=scale)
    jacobian = torch.func.jacrev(project_sphere)(v).reshape(width, width)
    p = project_sphere(v).numpy().ravel()
    signs = np.sign(p)
    expected = np.diag(signs**2) - np.outer(signs, signs) / np.count_nonzero(p)
    np.testing.assert_allclose(jacobian.numpy(), expected, atol=1e-12)


def test_project_ball_has_the_identity_as_jacobian_inside():
    v = torch.tensor([[0.2, -0.3, 0.1]], dtype=torch.float64)
    jacobian = torch.func.jacrev(project_ball)(v).reshape(3, 3)
    assert torch.equal(jacobian, torch.eye(3, dtype=torch.float64))


# --- several pieces: soft-thresholding, which is not a Euclidean projection -------------------


def test_projection_of_two_pieces_is_not_the_nearest_point():
    v = torch.tensor([[1.0, 0.8], [0.9, -0.1]], dtype=torch.float64)
    expected = torch.tensor([[0.6, 0.4], [0.5, 0.0]], dtype=torch.float64)
    for project in (project_sphere, project_ball):
        torch.testing.assert_close(project(v), expected)
        assert ((project(v) - v) ** 2).sum().item() == pytest.approx(0.49)
    assert nearest_row_distance(v.numpy()) == pytest.approx(0.38, abs=1e-9)
    nearest = torch.tensor([[0.7, 0.3], [0.7, -0.1]], dtype=torch.float64)
    assert row_norm(nearest).item() == pytest.approx(1)
    assert ((nearest - v) ** 2).sum().item() == pytest.approx(0.38)


def test_projection_shares_the_gradient_of_tied_pieces_evenly():
    """Only column 0 is in the support and ``tau = max_t v[t, 0] - 1``, with halves at the tie."""
    v = torch.tensor([[2.0, 0.5], [2.0, 0.1]], dtype=torch.float64)
    jacobian = torch.func.jacrev(project_sphere)(v)
    torch.testing.assert_close(project_sphere(v), torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double())
    expected = torch.zeros(2, 2, 2, 2, dtype=torch.float64)
    expected[:, 0, :, 0] = torch.tensor([[0.5, -0.5], [-0.5, 0.5]])
    torch.testing.assert_close(jacobian, expected)


@both
@pytest.mark.parametrize("pieces", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.02, 1.0, 4.0])
def test_projection_has_the_right_gradient_away_from_kinks(project, pieces, scale):
    v = normal((3, pieces, 4), scale=scale, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(project, v)


def test_threshold_has_the_right_gradient_away_from_kinks():
    assert torch.autograd.gradcheck(threshold, normal((4, 5), scale=2.0).requires_grad_())


# --- special rows -----------------------------------------------------------------------------


def test_project_sphere_stays_on_the_sphere_where_the_sign_of_the_paper_leaves_it():
    w = np.array([0.1, -1e-8, 0.0, -0.2])
    assert np.abs(paper_sign_projection(w)).sum() == pytest.approx(0.825)
    ours = project_sphere(torch.from_numpy(w)[None])
    assert row_norm(ours).item() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(ours[0].numpy(), [0.275, -0.175 - 1e-8, 0.175, -0.375], atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 5), (3, 4), (1, 1)])
def test_projection_of_a_zero_row_is_defined_with_a_finite_gradient(shape):
    zero = torch.zeros(shape, dtype=torch.float64)
    torch.testing.assert_close(project_sphere(zero), torch.full_like(zero, 1 / shape[-1]))
    assert torch.equal(project_ball(zero), zero)
    for project in (project_sphere, project_ball):
        assert torch.func.jacrev(project)(zero).isfinite().all()


@both
@pytest.mark.parametrize("v", [[[0.1, 0.0, -0.2]], [[0.1, 0.0], [0.0, 0.3]], [[0.5, -0.5]]])
def test_projection_of_rows_inside_the_ball_has_a_finite_gradient(project, v):
    assert torch.func.jacrev(project)(torch.tensor(v)).isfinite().all()


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("largest", [1e4, 1e10, 1e30])
def test_projection_of_huge_rows_keeps_the_largest_entries(project, largest, dtype):
    v = torch.tensor([[1.0, -1.0, 0.5, 0.0], [0.3, 0.2, -0.5, 0.0]], dtype=dtype)
    expected = torch.tensor([[0.5, -0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], dtype=dtype)
    assert torch.equal(project(largest * v), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_projection_of_large_rows_with_close_entries_has_norm_one(dtype):
    """A running sum minus 1 would lose the 1 here: 1e8 + 1 is 1e8 in float32."""
    v = torch.tensor([[1e8, -1e8, 1e8, 5.0]], dtype=dtype)
    expected = torch.tensor([[1 / 3, -1 / 3, 1 / 3, 0.0]], dtype=dtype)
    torch.testing.assert_close(project_sphere(v), expected)
    torch.testing.assert_close(project_ball(v), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("largest", [1e-10, 1e-30, 1e-40])
def test_projection_of_tiny_rows_is_uniform_on_the_sphere_and_itself_in_the_ball(largest, dtype):
    v = largest * torch.tensor([[1.0, -0.5, 0.0, -1.0]], dtype=dtype)
    expected = torch.tensor([[0.25, -0.25, 0.25, -0.25]], dtype=dtype)
    torch.testing.assert_close(project_sphere(v), expected)
    assert torch.equal(project_ball(v), v)


@given(shape=shapes, dtype=dtypes, seed=seeds, shared=st.booleans())
@quick
def test_projected_weight_is_the_scaled_projection(shape, dtype, seed, shared):
    out = 3
    v = normal((*shape[:-2], out, *shape[-2:]), dtype, seed, 2.0)
    g = normal((*shape[:-2], 1 if shared else out), dtype, [seed, 1])
    w = projected_weight(v, g)
    for o in range(out):
        length = g[..., 0 if shared else o]
        torch.testing.assert_close(
            w[..., o, :, :], length[..., None, None] * project_sphere(v[..., o, :, :])
        )
