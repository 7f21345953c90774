"""The bounds of one layer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from functional.random_weights import (
    BOUNDS,
    arrays,
    bounds,
    dtypes,
    quick,
    residuals,
    seeds,
    tensors,
)
from oracles import (
    layer_matrix_loops,
)
from psilonnet.functional import (
    improved_matrix,
    layer_matrix,
    merged_matrix,
    original_matrix,
    path_norm,
)


@given(shape=st.tuples(*[st.integers(1, 5)] * 3), square=st.booleans(), seed=seeds)
@quick
@bounds
def test_layer_matrix_equals_the_loops(bound, shape, square, seed):
    out, pieces, width = shape
    w = np.random.default_rng(seed).normal(size=(width if square else out, pieces, width))
    expected = layer_matrix_loops(w, bound=bound, residual=square)
    result = layer_matrix(torch.from_numpy(w), bound=bound, residual=square)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-14)


@residuals
def test_layer_matrix_calls_the_function_of_its_bound(residual):
    w = tensors(arrays((4, 4), (3, 3), 0))[0]
    functions = [original_matrix, improved_matrix, merged_matrix]
    for bound, function in zip(BOUNDS, functions, strict=True):
        assert torch.equal(
            layer_matrix(w, bound=bound, residual=residual), function(w, residual=residual)
        )


@given(width=st.integers(1, 5), pieces=st.integers(1, 8), dtype=dtypes, seed=seeds)
@quick
@residuals
def test_layer_matrices_are_ordered(residual, width, pieces, dtype, seed):
    w = tensors(arrays((width, width), (pieces, 1), seed, members=(3,)), dtype)[0]
    original, improved, merged = (layer_matrix(w, bound=b, residual=residual) for b in BOUNDS)
    slack = 1 + 8 * torch.finfo(dtype).eps
    assert (merged <= improved * slack).all()
    assert (improved <= original * slack).all()
    assert (merged >= 0).all()


def test_layer_matrix_names_the_rule_and_the_value_of_a_wrong_bound():
    w = torch.ones(1, 1, 1)
    message = (
        r"^The 'bound' must be one of \['improved', 'merged', 'original'\]\. Got 'best' instead\.$"
    )
    for function in (layer_matrix, lambda w, bound: path_norm([w], bound=bound)):
        with pytest.raises(ValueError, match=message):
            function(w, bound="best")


@bounds
def test_identity_is_not_added_to_a_layer_that_is_not_square(bound):
    """A single output would take the sum of the identity's rows without a word."""
    with pytest.raises(ValueError, match=r"as many outputs as inputs. Got 1 outputs and 4 inputs"):
        layer_matrix(torch.ones(1, 2, 4), bound=bound, residual=True)


def test_improved_matrix_shares_the_gradient_of_ties_evenly():
    """One unit, pieces 2, -2 and 1: the maximum is tied between the first two."""
    w = torch.tensor([[[2.0], [-2.0], [1.0]]], requires_grad=True)
    improved_matrix(w).sum().backward()
    assert w.grad.flatten().tolist() == [0.5, -0.5, 0.0]


def test_merged_matrix_shares_the_gradient_of_ties_evenly():
    """Pieces of 1 and -3 are ``|1 + 1| = |1 - 3| = 2`` with the identity: tied, opposite signs."""
    w = torch.tensor([[[1.0], [-3.0]]], requires_grad=True)
    merged_matrix(w, residual=True).sum().backward()
    assert w.grad.flatten().tolist() == [0.5, -0.5]
