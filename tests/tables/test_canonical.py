import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psilonnet.tables import canonical_rows, read_columns


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12), st.data()
)
def test_canonical_form_does_not_see_repeats_and_order(rows, data):
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    if not any(times):
        return
    x, y = np.array(rows, dtype=float).T
    order = data.draw(st.permutations(range(sum(times))))
    repeated = np.repeat(np.arange(len(rows)), times)[list(order)]

    def form(index, weight):
        columns = read_columns(x[index][:, None])
        kept = canonical_rows(columns, y[index][:, None], weight)
        return x[index][kept.position], y[index][kept.position], kept.weight

    weighted = form(np.arange(len(rows)), np.array(times, dtype=float))
    listed = form(repeated, np.ones(len(repeated)))
    for a, b in zip(weighted, listed, strict=True):
        np.testing.assert_array_equal(a, b)


def copies(x, y):
    return canonical_rows(read_columns(x), y.reshape(-1, 1), np.ones(len(x))).copies()


@pytest.mark.parametrize("times", [2, 3, 4, 10])
def test_rows_are_copies_however_often_each_occurs(times):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    for target in (y, y > 0):
        repeated = np.tile(target, times).astype(float)
        assert copies(np.tile(x, (times, 1)), repeated) == 80 * (times - 1)


def test_rows_of_few_cells_are_no_copies_also_if_these_decide_the_target():
    rng = np.random.default_rng(0)
    factorial = np.tile(list(itertools.product(range(3), range(4), range(5))), (20, 1)) * 1.0
    levels = np.arange(1200) % 40
    quiet = rng.poisson(2.0, size=(1200, 8)) * (rng.random((1200, 1)) < 0.2)
    for x, y in (
        (factorial, rng.normal(size=1200)),
        (factorial, factorial.sum(axis=1)),
        (levels[:, None], levels % 2),
        (np.stack([levels, levels // 2], axis=1), rng.random(1200) < 0.5),
        (quiet, rng.random(1200) < 0.02),
    ):
        assert copies(x.astype(float), y.astype(float)) == 0
