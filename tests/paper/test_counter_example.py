"""Theorem 1's right side fails for several outputs if its last factor is the induced norm."""

import torch

from psilonnet.functional import path_norm, product_bound

W1 = torch.eye(2, dtype=torch.float64).unsqueeze(-2)
W2 = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64).unsqueeze(-2)


def induced_norm(matrix: torch.Tensor) -> float:
    """Return ``max ||W x||_1 over ||x||_inf = 1``, attained at a corner of the cube."""
    corners = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=matrix.dtype)
    return float((corners @ matrix.mT).abs().sum(dim=-1).max())


def row_sum_norm(matrix: torch.Tensor) -> float:
    return float(matrix.abs().sum(dim=-1).max())


def test_product_of_induced_norms_is_below_the_path_norm():
    product = induced_norm(W2.squeeze(-2)) * row_sum_norm(W1.squeeze(-2))
    assert product == 2
    assert path_norm([W1, W2]) == 4
    assert path_norm([W1, W2]) > product


def test_product_bound_holds_where_the_induced_norm_fails():
    assert product_bound([W1, W2]) == 4
    assert path_norm([W1, W2]) <= product_bound([W1, W2])


def test_product_bound_of_one_output_is_the_product_of_the_induced_norms():
    assert product_bound([2 * W1, W2[:1]]) == 2 * induced_norm(W2[:1].squeeze(-2)) == 4
