"""The mass of single pieces, on which the sign of a slope rests."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from functional.random_weights import arrays, blocks, quick, residuals, seeds, tensors
from psilonnet.functional import path_mass, piece_mass


def piece_mass_loops(weights, residual):
    """Return ``1' |W_K| ... |W_1[t]|`` by loops over the pieces of the first layer."""
    merged = [
        w + residual[k] * np.eye(w.shape[0])[:, None, :] if residual[k] else w
        for k, w in enumerate(weights)
    ]
    product = np.ones(merged[-1].shape[0])
    for w in reversed(merged[1:]):
        product = product @ np.abs(w).max(axis=1)
    first = merged[0]
    return np.stack([product @ np.abs(first[:, t]) for t in range(first.shape[1])])


@given(
    widths=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    pieces=st.tuples(st.integers(1, 4), st.integers(1, 2)),
    seed=seeds,
)
@quick
@residuals
def test_piece_mass_equals_the_loops(residual, widths, pieces, seed):
    weights = arrays(widths, pieces, seed)
    flags = blocks(weights, residual)
    found = piece_mass(tensors(weights), residual=flags)
    np.testing.assert_allclose(found.numpy(), piece_mass_loops(weights, flags), rtol=1e-12)
    whole = path_mass(tensors(weights), residual=flags, bound="merged")
    assert (found.amax(dim=-2) <= whole * (1 + 1e-12)).all()  # a maximum of sums, not of terms
    last = torch.tensor([widths[0] - 1])
    assert piece_mass(tensors(weights), residual=flags, inputs=last).equal(found[:, -1:])


@pytest.mark.parametrize("members", [(), (3,), (2, 3)])
def test_members_have_masses_of_their_own(members):
    weights = tensors(arrays([4, 5, 1], (3, 1), 0, members))
    found = piece_mass(weights)
    assert found.shape == (*members, 3, 4)
    if members:
        one = [w[(0,) * len(members)] for w in weights]
        torch.testing.assert_close(found[(0,) * len(members)], piece_mass(one))
