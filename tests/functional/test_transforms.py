"""Every function of ``psilonnet.functional`` under the transforms of torch."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import psilonnet.functional as psilon

MEMBERS = 3
INNER = (False, True, False)  # the layer in the middle is a residual block


class Case(NamedTuple):
    """A function of tensors, the shapes of its arguments, and whether it has a gradient."""

    function: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...], ...]
    smooth: bool = True


def on_list(function: Callable[..., Tensor], **kwargs: object) -> Callable[..., Tensor]:
    """Let a function of a sequence of tensors take them one by one."""
    return lambda *tensors: function(tensors, **kwargs)


def margin(*weights: Tensor) -> Tensor:
    *rest, outputs = weights
    return psilon.path_matrix(rest, residual=INNER, bound="merged", outputs=outputs)


def with_biases(w1: Tensor, w2: Tensor, w3: Tensor, b1: Tensor, b2: Tensor, b3: Tensor) -> Tensor:
    weights = psilon.add_bias_neuron([w1, w2, w3], [b1, b2, b3], residual=INNER)
    return psilon.path_matrix(weights, residual=INNER, bound="merged")


def sorted_knots(x: Tensor, edges: Tensor) -> Tensor:
    return psilon.knots(x, edges.sort(dim=-2).values)


ROW, LENGTH, VECTOR = (4, 2, 5), (4,), (7,)
NET = ((4, 3, 2), (4, 2, 4), (2, 2, 4))
CASES = {
    "relu": Case(psilon.relu, (VECTOR,)),
    "crelu": Case(psilon.crelu, (VECTOR,)),
    "knots": Case(sorted_knots, (VECTOR, (3, 7))),
    "row_norm": Case(psilon.row_norm, (ROW,)),
    "row_norm_2": Case(partial(psilon.row_norm, order=2), (ROW,)),
    "normalized_weight": Case(psilon.normalized_weight, (ROW, LENGTH)),
    "oblique_project": Case(psilon.oblique_project, (ROW, ROW)),
    "mixed_weight": Case(partial(psilon.mixed_weight, prune_mix=0.3), (ROW, LENGTH)),
    "threshold": Case(psilon.threshold, (VECTOR,)),
    "project_sphere": Case(psilon.project_sphere, (ROW,)),
    "project_ball": Case(psilon.project_ball, (ROW,)),
    "projected_weight": Case(psilon.projected_weight, (ROW, LENGTH)),
    "near_sparsity": Case(psilon.near_sparsity, (VECTOR,)),
    "exact_sparsity": Case(psilon.exact_sparsity, (VECTOR,), smooth=False),
    "original_matrix": Case(partial(psilon.original_matrix, residual=True), NET[1:2]),
    "improved_matrix": Case(partial(psilon.improved_matrix, residual=True), NET[1:2]),
    "merged_matrix": Case(partial(psilon.merged_matrix, residual=True), NET[1:2]),
    "layer_matrix": Case(partial(psilon.layer_matrix, bound="improved"), NET[:1]),
    "path_norm": Case(on_list(psilon.path_norm, residual=INNER, bound="improved"), NET),
    "path_mass": Case(on_list(psilon.path_mass, residual=INNER), NET),
    "piece_mass": Case(on_list(psilon.piece_mass, residual=INNER), NET),
    "path_matrix": Case(margin, (*NET, (1, 2))),
    "product_bound": Case(on_list(psilon.product_bound, bound="merged"), NET),
    "add_bias_neuron": Case(with_biases, (*NET, (4,), (4,), (2,))),
    "closed_form": Case(on_list(psilon.closed_form, residual=INNER), ((1,), (1,), (3,))),
}
INDUCTOR = ("knots", "mixed_weight", "path_norm")

every_case = pytest.mark.parametrize("name", CASES)
every_smooth_case = pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.smooth])


def arguments(name: str, seed: int = 0, members: tuple[int, ...] = ()) -> tuple[Tensor, ...]:
    rng = np.random.default_rng(seed)
    return tuple(torch.from_numpy(rng.normal(size=(*members, *s))) for s in CASES[name].shapes)


def total(name: str) -> Callable[..., Tensor]:
    """Return a number that depends on every entry of the function's result."""
    function = CASES[name].function
    return lambda *args: function(*args).square().sum()


def gradients(name: str, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    leaves = [a.clone().requires_grad_() for a in args]
    return torch.autograd.grad(total(name)(*leaves), leaves)


class Wrapper(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.function = CASES[name].function

    def forward(self, *args: Tensor) -> Tensor:
        return self.function(*args)


def test_transform_cases_hold_every_public_function():
    # Parts of others that are here, for the floors above; the first two have tests of their own.
    parts = {"compiled_weights", "fused_weight", "largest_piece", "linear", "smallest_norm"}
    covered = set(CASES) | parts | {"Bound", "normalized_linear"}
    assert set(psilon.__all__) <= covered


@every_smooth_case
def test_func_grad_equals_autograd(name):
    args = arguments(name)
    numbers = tuple(range(len(args)))
    result = torch.func.grad(total(name), argnums=numbers)(*args)
    for ours, expected in zip(result, gradients(name, args), strict=True):
        torch.testing.assert_close(ours, expected)
        assert (expected != 0).any()


@every_case
def test_vmap_equals_leading_axes_and_one_member_at_a_time(name):
    function, args = CASES[name].function, arguments(name, members=(MEMBERS,))
    result = torch.func.vmap(function)(*args)
    torch.testing.assert_close(result, function(*args))
    alone = [function(*(a[m] for a in args)) for m in range(MEMBERS)]
    torch.testing.assert_close(result, torch.stack(alone))


@every_smooth_case
def test_vmap_of_grad_equals_the_gradients_of_leading_axes(name):
    args = arguments(name, members=(MEMBERS,))
    numbers = tuple(range(len(args)))
    result = torch.func.vmap(torch.func.grad(total(name), argnums=numbers))(*args)
    for ours, expected in zip(result, gradients(name, args), strict=True):
        torch.testing.assert_close(ours, expected)


def check_compiled(name: str, backend: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(CASES[name].function, fullgraph=True, backend=backend)
    for seed in range(2):  # the second call shows that no value was frozen into the graph
        args = tuple(a.requires_grad_(CASES[name].smooth) for a in arguments(name, seed))
        result, expected = compiled(*args), CASES[name].function(*args)
        torch.testing.assert_close(result, expected)
        if CASES[name].smooth:
            ours = torch.autograd.grad(result.square().sum(), args)
            theirs = torch.autograd.grad(expected.square().sum(), args)
            torch.testing.assert_close(ours, theirs)


@every_case
def test_compile_full_graph_equals_eager(name):
    check_compiled(name, "aot_eager")


# torch's own import of its back end warns about torch's own torch.jit
@pytest.mark.filterwarnings("ignore:.torch.jit.script.* is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "name", [INDUCTOR[0], *(pytest.param(name, marks=pytest.mark.long) for name in INDUCTOR[1:])]
)
def test_compile_with_inductor_equals_eager(name):
    check_compiled(name, "inductor")


@every_case
def test_export_equals_eager_on_new_values(name):
    exported = torch.export.export(Wrapper(name), arguments(name))
    other = arguments(name, seed=1)
    torch.testing.assert_close(exported.module()(*other), CASES[name].function(*other))
