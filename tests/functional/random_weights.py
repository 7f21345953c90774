"""Random weights of networks, with and without residual blocks."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st

quick = settings(derandomize=True, deadline=None, max_examples=40)
dtypes = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**32 - 1)
BOUNDS = ["original", "improved", "merged"]
bounds = pytest.mark.parametrize("bound", BOUNDS)
residuals = pytest.mark.parametrize("residual", [False, True])


def blocks(weights, residual=True):
    """Return flags of all layers that can be residual blocks, the first and the last included."""
    return [residual and w.shape[-3] == w.shape[-1] for w in weights]


def arrays(widths, pieces, seed, members=()):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(*members, out, pieces[min(k, 1)], width))
        for k, (width, out) in enumerate(pairwise(widths))
    ]


def tensors(values, dtype=torch.float64):
    return [torch.from_numpy(np.ascontiguousarray(v)).to(dtype) for v in values]
