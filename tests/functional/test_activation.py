import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import split
from psilonnet.functional import crelu, knots, relu

quick = settings(derandomize=True, deadline=None, max_examples=40)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)


def points(shape, dtype, seed, *, scale=2.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).normal(size=shape)).to(dtype)


def edges_of(count, n, dtype, seed):
    return points((count, n), dtype, [seed, 1], scale=1.0).sort(dim=0).values


def pieces_of(name, z, edges):
    return {"relu": relu, "crelu": crelu}[name](z) if name != "knots" else knots(z, edges)


@given(shape=shapes, count=st.integers(1, 7), seed=seeds)
@quick
@pytest.mark.parametrize("name", ["relu", "crelu", "knots"])
def test_pieces_equal_the_oracle(name, shape, count, seed):
    z = points(shape, torch.float64, seed)
    edges = edges_of(count, shape[-1], torch.float64, seed)
    expected, _ = split(z.numpy(), name, edges.numpy())
    pieces = pieces_of(name, z, edges)
    assert pieces.shape == (*shape[:-1], expected.shape[-2], shape[-1])
    np.testing.assert_allclose(pieces.numpy(), expected, rtol=0, atol=1e-15)


@given(shape=shapes, dtype=dtypes, count=st.integers(1, 7), seed=seeds)
@quick
@pytest.mark.parametrize("name", ["relu", "crelu", "knots"])
def test_pieces_move_at_most_as_far_as_their_coordinate(name, shape, dtype, count, seed):
    a, b = points(shape, dtype, seed), points(shape, dtype, [seed, 2])
    edges = edges_of(count, shape[-1], dtype, seed)
    moved = (pieces_of(name, a, edges) - pieces_of(name, b, edges)).abs().sum(dim=-2)
    assert moved.dtype == dtype
    tolerance = 64 * torch.finfo(dtype).eps
    assert (moved <= (a - b).abs() + tolerance).all()


@given(shape=shapes, dtype=dtypes, count=st.integers(1, 7), seed=seeds)
@quick
@pytest.mark.parametrize("name", ["crelu", "knots"])
def test_pieces_sum_to_the_coordinate_and_vanish_at_zero(name, shape, dtype, count, seed):
    z, edges = points(shape, dtype, seed), edges_of(count, shape[-1], dtype, seed)
    tolerance = 64 * torch.finfo(dtype).eps
    assert ((pieces_of(name, z, edges).sum(dim=-2) - z).abs() <= tolerance).all()
    assert (pieces_of(name, torch.zeros_like(z), edges) == 0).all()


def test_relu_is_one_piece():
    assert torch.equal(relu(torch.tensor([3.0, -2.0])), torch.tensor([[3.0, 0.0]]))


def test_knots_values_by_hand():
    edges = torch.tensor([[-1.0, 0.5], [2.0, 0.5]])
    expected = torch.tensor([[-3.0, 0.5], [-1.0, 0.0], [0.0, 2.5]])
    assert torch.equal(knots(torch.tensor([-4.0, 3.0]), edges), expected)


def test_knots_with_edges_per_member_equal_one_member_at_a_time():
    x = points((3, 5, 2), torch.float64, 0)
    edges = points((3, 1, 4, 2), torch.float64, 1).sort(dim=-2).values
    one_by_one = torch.stack([knots(x[m], edges[m, 0]) for m in range(3)])
    assert torch.equal(knots(x, edges), one_by_one)


def test_knots_without_edges_is_the_identity():
    x = torch.tensor([[1.0, -2.0]])
    assert torch.equal(knots(x, torch.empty(0, 2)), x.unsqueeze(-2))


@pytest.mark.parametrize("name", ["relu", "crelu", "knots"])
def test_pieces_have_the_right_gradient_away_from_kinks(name):
    z = points((2, 3), torch.float64, 0).requires_grad_()
    edges = edges_of(3, 3, torch.float64, 0)
    assert torch.autograd.gradcheck(lambda t: pieces_of(name, t, edges), z)


def kink_gradients(name, z, edges=None):
    """Return the gradient of each piece of one number."""
    z = torch.tensor([z], dtype=torch.float64)
    return torch.func.jacrev(lambda t: pieces_of(name, t, edges))(z).flatten()


@pytest.mark.parametrize("name", ["relu", "crelu"])
def test_pieces_share_at_most_one_gradient_at_zero(name):
    gradients = kink_gradients(name, 0.0)
    assert (gradients >= 0).all()
    assert gradients.sum() <= 1


@pytest.mark.parametrize("at", [-1.0, 0.5, 2.0])
def test_knots_give_an_edge_to_the_piece_below_it(at):
    edges = torch.tensor([[-1.0], [0.5], [2.0]], dtype=torch.float64)
    gradients = kink_gradients("knots", at, edges)
    expected = torch.zeros(4, dtype=torch.float64)
    expected[edges.flatten().tolist().index(at)] = 1
    assert torch.equal(gradients, expected)


@pytest.mark.parametrize("repeats", [2, 3])
def test_knots_with_equal_edges_share_at_most_one_gradient(repeats):
    edges = torch.full((repeats, 1), 0.5, dtype=torch.float64)
    assert kink_gradients("knots", 0.5, edges).sum() <= 1
