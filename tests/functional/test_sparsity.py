import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import entropy_near_sparsity
from psilonnet.functional import exact_sparsity, near_sparsity

quick = settings(derandomize=True, deadline=None, max_examples=50)
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)


def vectors(shape, dtype, seed, *, zeros=0.3):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * (rng.random(shape) >= zeros)
    return torch.from_numpy(values).to(dtype)


@given(shape=shapes, seed=seeds)
@quick
def test_near_sparsity_equals_the_entropy_oracle(shape, seed):
    v = vectors(shape, torch.float64, seed)
    expected = np.apply_along_axis(entropy_near_sparsity, -1, v.numpy())
    assert near_sparsity(v).shape == shape[:-1]
    np.testing.assert_allclose(near_sparsity(v).numpy(), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_near_sparsity_equals_exact_sparsity_on_bit_vectors(d, dtype):
    bits = torch.tensor(list(itertools.product((0, 1), repeat=d)), dtype=dtype)
    expected = 1 - bits.sum(dim=-1) / d
    tolerance = 8 * torch.finfo(dtype).eps
    torch.testing.assert_close(near_sparsity(bits), expected, rtol=0, atol=tolerance)
    torch.testing.assert_close(exact_sparsity(bits), expected, rtol=0, atol=tolerance)


def test_near_sparsity_of_a_zero_vector_is_one():
    v = torch.stack((torch.zeros(4), torch.ones(4)))
    assert torch.equal(near_sparsity(v), torch.tensor([1.0, 0.0]))


@given(shape=shapes, dtype=dtypes, seed=seeds, power=st.integers(-30, 30))
@quick
def test_near_sparsity_ignores_scale_signs_and_order(shape, dtype, seed, power):
    v = vectors(shape, dtype, seed)
    changed = -(10.0**power) * v.flip(-1)
    assert near_sparsity(changed).dtype == dtype
    tolerance = 32 * torch.finfo(dtype).eps
    torch.testing.assert_close(near_sparsity(changed), near_sparsity(v), rtol=0, atol=tolerance)


@given(shape=shapes, dtype=dtypes, seed=seeds)
@quick
def test_near_sparsity_is_at_least_exact_sparsity(shape, dtype, seed):
    v = vectors(shape, dtype, seed)
    tolerance = 32 * torch.finfo(dtype).eps
    assert (near_sparsity(v) >= exact_sparsity(v) - tolerance).all()
    assert (near_sparsity(v) <= 1).all()


@given(shape=shapes, dtype=dtypes, seed=seeds)
@quick
def test_exact_sparsity_counts_zeros(shape, dtype, seed):
    v = vectors(shape, dtype, seed)
    expected = np.mean(v.numpy() == 0, axis=-1)
    assert exact_sparsity(v).dtype == dtype
    np.testing.assert_allclose(exact_sparsity(v).numpy(), expected, rtol=1e-6)


def test_near_sparsity_has_the_right_gradient_away_from_zero():
    v = vectors((3, 4), torch.float64, 0, zeros=0).requires_grad_()
    assert torch.autograd.gradcheck(near_sparsity, v)


@pytest.mark.parametrize("v", [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
def test_near_sparsity_has_a_gradient_without_nan_where_entries_are_zero(v):
    v = torch.tensor(v, requires_grad=True)
    near_sparsity(v).backward()
    assert not v.grad.isnan().any()
