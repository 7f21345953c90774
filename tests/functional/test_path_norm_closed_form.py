"""The closed form of normalised networks."""

import numpy as np
import pytest
import torch

from functional.random_weights import arrays, blocks, tensors
from oracles import (
    path_matrix_loops,
)
from psilonnet.functional import (
    closed_form,
    normalized_weight,
    path_norm,
    product_bound,
)


def test_closed_form_refuses_lengths_that_are_not_shared():
    with pytest.raises(ValueError, match=r"one shared length .* Got \[1, 3\] lengths"):
        closed_form([torch.ones(1), torch.ones(3), torch.ones(2)])


def normalized_net(layers, pieces, seed=0, members=()):
    """Return weights with L1-normalised rows and their lengths, shared but for the last layer."""
    rng = np.random.default_rng([seed, layers])
    widths = rng.choice((3, 4), size=layers + 1, p=(0.8, 0.2))  # many layers are square
    lengths = [rng.uniform(-1.5, 1.5, size=(*members, 1)) for _ in range(layers - 1)]
    lengths.append(rng.normal(size=(*members, widths[-1])))
    directions = tensors(arrays(widths, (1, pieces), seed, members))
    lengths = tensors(lengths)
    weights = [normalized_weight(v, g) for v, g in zip(directions, lengths, strict=True)]
    return weights, lengths


@pytest.mark.parametrize("members", [(), (2, 3)])
@pytest.mark.parametrize("layers", [1, 2, 3, 10, 50])
@pytest.mark.parametrize(("residual", "pieces"), [(False, 1), (False, 2), (True, 2), (True, 3)])
def test_closed_form_equals_the_matrix_product(residual, pieces, layers, members):
    weights, lengths = normalized_net(layers, pieces, members=members)
    flags = blocks(weights, residual)
    expected = path_norm(weights, bound="improved", residual=flags)
    result = closed_form(lengths, residual=flags)
    assert result.shape == members
    torch.testing.assert_close(result, expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("layers", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("residual", [False, True])
def test_closed_form_equals_the_oracle(residual, layers):
    weights, lengths = normalized_net(layers, pieces=1 + residual)
    flags = blocks(weights, residual)
    matrix = path_matrix_loops([w.numpy() for w in weights], bound="improved", residual=flags)
    result = closed_form(lengths, residual=flags)
    np.testing.assert_allclose(result.numpy(), matrix.sum(), rtol=1e-10)


def test_closed_form_equals_the_product_bound_of_a_normalised_net():
    weights, lengths = normalized_net(4, pieces=1)
    torch.testing.assert_close(closed_form(lengths), product_bound(weights), rtol=1e-12, atol=0)


@pytest.mark.parametrize("residual", [False, True])
def test_closed_form_has_the_right_gradient(residual):
    weights, lengths = normalized_net(4, pieces=2, members=(2,))
    inputs = tuple(g.requires_grad_() for g in lengths)
    flags = blocks(weights, residual)
    assert torch.autograd.gradcheck(lambda *g: closed_form(g, residual=flags), inputs)
