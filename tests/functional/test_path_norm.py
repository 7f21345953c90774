import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from functional.random_weights import (
    arrays,
    blocks,
    bounds,
    dtypes,
    quick,
    residuals,
    seeds,
    tensors,
)
from oracles import (
    Net,
    forward,
    layer_matrix_loops,
    path_matrix_loops,
    path_sums,
    random_net,
)
from psilonnet.functional import (
    add_bias_neuron,
    closed_form,
    path_mass,
    path_matrix,
    path_norm,
    product_bound,
)


@st.composite
def nets(draw, max_depth=5, max_pieces=8):
    """Return the widths from the inputs to the outputs, and pieces of the first and other layers.

    Many widths are equal, so that many layers can be residual blocks.
    """
    depth = draw(st.integers(1, max_depth))
    sizes = st.sampled_from(draw(st.tuples(st.integers(1, 4), st.integers(1, 4))))
    pieces = (draw(st.integers(1, max_pieces)), draw(st.integers(1, max_pieces)))
    return tuple(draw(sizes) for _ in range(depth + 1)), pieces


def pairs(classes):
    """Return the rows ``e_a - e_b`` of all pairs of classes."""
    eye = np.eye(classes)
    return np.stack([eye[a] - eye[b] for a in range(classes) for b in range(a)])


@pytest.mark.parametrize("function", [path_norm, path_mass, path_matrix, product_bound])
def test_path_norm_of_no_weights_is_refused(function):
    with pytest.raises(ValueError, match="at least one weight"):
        function([])


@pytest.mark.parametrize("function", [path_norm, path_mass, path_matrix, product_bound])
@pytest.mark.parametrize("residual", [True, [], [True], (False, True, False)])
def test_residual_is_said_of_each_layer(function, residual):
    weights = tensors(arrays((3, 3, 3), (1, 2), 0))
    with pytest.raises(ValueError, match=r"of each of the 2 layers .* Got .* one bool for each"):
        function(weights, residual=residual)
    with pytest.raises(ValueError, match=r"of each of the 2 layers .* Got .* one bool for each"):
        closed_form([torch.ones(1)] * 2, residual=residual)


@given(net=nets(max_depth=4, max_pieces=2), seed=seeds)
@settings(quick, max_examples=25)
@residuals
def test_path_matrix_equals_the_enumeration_of_all_paths(residual, net, seed):
    weights = arrays(*net, seed)
    expected = path_sums(weights, residual=blocks(weights, residual))
    result = path_matrix(tensors(weights), residual=blocks(weights, residual))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


def test_path_norm_counts_every_path_once():
    """With unit weights it is the number of paths: 2 outputs, a block of 2(3 + 1), 2 * 5 inputs."""
    weights = tensors([np.ones((3, 2, 5)), np.ones((3, 2, 3)), np.ones((2, 2, 3))])
    inner = [False, True, False]
    assert path_norm(weights, residual=inner) == 2 * (2 * 3) * (2 * (3 + 1)) * (2 * 5)


@given(net=nets(), seed=seeds)
@quick
@residuals
@bounds
def test_path_matrix_equals_the_loops(bound, residual, net, seed):
    weights = arrays(*net, seed)
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    expected = path_matrix_loops(weights, **kwargs)
    result = path_matrix(tensors(weights), **kwargs)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)


@given(net=nets(), seed=seeds, dtype=dtypes, members=st.sampled_from([(), (2,), (2, 3)]))
@quick
@residuals
@bounds
def test_path_norm_mass_and_matrix_agree(bound, residual, net, seed, dtype, members):
    weights = tensors(arrays(*net, seed, members), dtype)
    widths, _ = net
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    matrix = path_matrix(weights, **kwargs)
    mass, norm = path_mass(weights, **kwargs), path_norm(weights, **kwargs)
    assert matrix.shape == (*members, widths[-1], widths[0])
    assert (mass.shape, norm.shape) == ((*members, widths[0]), members)
    assert norm.dtype == dtype
    rtol = 1e-4 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(mass, matrix.sum(dim=-2), rtol=rtol, atol=0)
    torch.testing.assert_close(norm, mass.sum(dim=-1), rtol=rtol, atol=0)


@given(net=nets(), seed=seeds)
@quick
@residuals
@bounds
def test_path_norm_on_leading_axes_equals_one_member_at_a_time(bound, residual, net, seed):
    weights = tensors(arrays(*net, seed, members=(2, 3)))
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    for function in (path_norm, path_mass, path_matrix, product_bound):
        together = function(weights, **kwargs)
        alone = function([w[1, 2] for w in weights], **kwargs)
        torch.testing.assert_close(together[1, 2], alone, rtol=1e-12, atol=0)


@given(net=nets(), seed=seeds)
@quick
@residuals
@bounds
def test_product_bound_equals_the_loops_and_is_above_the_path_norm(bound, residual, net, seed):
    weights = arrays(*net, seed)
    flags = blocks(weights, residual)
    *rest, last = (
        layer_matrix_loops(w, bound=bound, residual=flag)
        for w, flag in zip(weights, flags, strict=True)
    )
    expected = last.sum() * np.prod([matrix.sum(axis=1).max() for matrix in rest])
    result = product_bound(tensors(weights), bound=bound, residual=flags)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
    norm = path_norm(tensors(weights), bound=bound, residual=flags)
    assert norm <= result * (1 + 1e-12)


@given(net=nets(), seed=seeds, combinations=st.integers(1, 4))
@quick
@residuals
@bounds
def test_path_matrix_of_combinations_equals_the_loops(bound, residual, net, seed, combinations):
    weights, (widths, _) = arrays(*net, seed), net
    outputs = np.random.default_rng([seed, 1]).normal(size=(combinations, widths[-1]))
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    expected = path_matrix_loops(weights, outputs=outputs, **kwargs)
    kwargs["outputs"] = torch.from_numpy(outputs)
    matrix = path_matrix(tensors(weights), **kwargs)
    np.testing.assert_allclose(matrix.numpy(), expected, rtol=1e-10)
    np.testing.assert_allclose(path_mass(tensors(weights), **kwargs), expected.sum(0), rtol=1e-10)
    np.testing.assert_allclose(path_norm(tensors(weights), **kwargs), expected.sum(), rtol=1e-10)


@residuals
def test_path_matrix_of_a_margin_is_the_sum_of_its_definition(residual):
    """``sum_i max_t |w[a, t, i] - w[b, t, i]| m_i``, with m the mass that reaches unit i."""
    weights = arrays((3, 4, 4, 3), (2, 2), 0)
    inner = [False, residual, False]
    m = path_matrix_loops([*weights[:-1], np.eye(4)[:, None]], bound="improved", residual=inner)
    m = m.sum(axis=1)
    last = weights[-1]
    expected = [
        sum(np.abs(last[a, :, i] - last[b, :, i]).max() * m[i] for i in range(4))
        for a in range(3)
        for b in range(a)
    ]
    matrix = path_matrix(
        tensors(weights), residual=inner, bound="improved", outputs=torch.from_numpy(pairs(3))
    )
    np.testing.assert_allclose(matrix.sum(dim=-1).numpy(), expected, rtol=1e-12)


@bounds
def test_path_matrix_of_the_identity_is_that_of_the_outputs(bound):
    weights = tensors(arrays((3, 4, 2), (1, 2), 0, members=(5,)))
    eye = torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(
        path_matrix(weights, bound=bound, outputs=eye), path_matrix(weights, bound=bound)
    )


@residuals
@bounds
def test_path_matrix_of_a_margin_is_at_most_the_sum_of_its_outputs(bound, residual):
    weights = tensors(arrays((3, 4, 4, 3, 3), (1, 2), 0))
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    each = path_matrix(weights, **kwargs)
    rows = torch.from_numpy(pairs(3))
    margin = path_matrix(weights, outputs=rows, **kwargs)
    assert (margin <= rows.abs() @ each * (1 + 1e-12)).all()


@given(net=nets(), seed=seeds, members=st.sampled_from([(), (3,)]))
@quick
@residuals
@bounds
def test_add_bias_neuron_changes_no_bound(bound, residual, net, seed, members):
    (widths, _), rng = net, np.random.default_rng([seed, 1])
    weights = tensors(arrays(*net, seed, members))
    biases = tensors(rng.normal(size=(*members, out)) for out in widths[1:])
    kwargs = {"bound": bound, "residual": blocks(weights, residual)}
    augmented = add_bias_neuron(weights, biases, residual=kwargs["residual"])
    columns = path_matrix(augmented, **kwargs)[..., 1:]
    constant = columns[..., : -widths[-1], :]  # a block hands the constant on
    assert (constant.shape[-2] == 1) == kwargs["residual"][-1]
    assert (constant == 0).all()
    expected = path_matrix(weights, **kwargs)
    torch.testing.assert_close(columns[..., -widths[-1] :, :], expected, rtol=1e-12, atol=0)


@residuals
@pytest.mark.parametrize("activation", ["relu", "crelu"])
@pytest.mark.parametrize("knots", [1, 4])
def test_add_bias_neuron_computes_the_same_function_of_an_input_of_one(activation, residual, knots):
    rng = np.random.default_rng(0)
    net = random_net(rng, (3, 4, 4, 4, 2), activation=activation, residual=residual, knots=knots)
    augmented = add_bias_neuron(tensors(net.weights), tensors(net.biases), residual=net.residual)
    weights = [w.numpy() for w in augmented]
    edges = None
    if knots > 1:  # the constant lies in the first piece
        edges = np.insert(net.edges, 0, 2.0, axis=-1)
    twin = Net(weights, [np.zeros(len(w)) for w in weights], activation, net.residual, edges)
    x = rng.normal(size=(10, 3))
    ones = np.insert(x, 0, 1.0, axis=-1)
    np.testing.assert_allclose(forward(twin, ones)[0], forward(net, x)[0], atol=1e-12)


def test_add_bias_neuron_writes_the_matrices_of_the_paper():
    w = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    b = torch.tensor([5.0, 6.0])
    first, last = add_bias_neuron([w, w], [b, b])
    expected = [[5.0, 1.0, 2.0], [6.0, 3.0, 4.0]]
    assert first.squeeze(-2).tolist() == [[1.0, 0.0, 0.0], *expected]
    assert last.squeeze(-2).tolist() == expected


@residuals
@bounds
@pytest.mark.parametrize("function", [path_norm, path_mass, path_matrix, product_bound])
def test_path_norm_has_the_right_gradient_away_from_ties(function, bound, residual):
    weights = tensors(arrays((3, 3, 2, 2), (3, 2), 0))
    flags = blocks(weights, residual)
    assert torch.autograd.gradcheck(
        lambda *w: function(w, bound=bound, residual=flags),
        tuple(w.requires_grad_() for w in weights),
    )


@residuals
@bounds
def test_path_norm_gradient_reaches_every_weight(bound, residual):
    weights = [w.requires_grad_() for w in tensors(arrays((3, 4, 4, 2), (1, 1), 0))]
    path_norm(weights, bound=bound, residual=blocks(weights, residual)).backward()
    assert all((w.grad != 0).all() for w in weights)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_path_norm_is_homogeneous_at_huge_and_tiny_magnitudes(scale):
    weights = tensors(arrays((3, 4, 2), (1, 2), 0))
    scaled = [scale * weights[0], weights[1]]
    torch.testing.assert_close(path_norm(scaled) / scale, path_norm(weights), rtol=1e-12, atol=0)
