"""What is trained by default, and what parameters change about it."""

from itertools import pairwise

import numpy as np
import pytest

from psilonnet import PSiLONRegressor
from psilonnet.estimators.designs import DESIGNS, Design
from psilonnet.estimators.recipe import (
    FALLBACK_STRENGTH,
    FEW_DESIGNS,
    FEW_ROWS,
    FEW_WIDTH,
    SNAPSHOTS,
    STRONGEST,
    TINY,
    WEAKEST,
    WIDTH,
    _auto_factor,
    _auto_steps,
    _path_strengths,
    make_recipe,
)


def recipe(rows, *, alone=False, **parameters):
    parameters = PSiLONRegressor(**parameters).get_params(deep=False)
    return make_recipe(parameters, rows, seed=7, alone=alone)


def test_steps_are_constant_up_to_a_batch_and_then_grow_with_the_root_of_the_rows():
    assert _auto_steps(10) == _auto_steps(256) < _auto_steps(257)
    assert _auto_steps(8000) == 2 * _auto_steps(2000)
    assert _auto_steps(10**7) == 3 * _auto_steps(2000)
    steps = [_auto_steps(rows) for rows in range(1, 50_000, 97)]
    assert steps == sorted(steps)
    assert _auto_steps(100, batch_size=99) > _auto_steps(100, batch_size=100)


def test_few_rows_have_narrow_networks():
    assert recipe(FEW_ROWS).width == FEW_WIDTH < recipe(FEW_ROWS + 1).width == WIDTH
    assert recipe(FEW_ROWS, width=200).width == 200  # what was asked for is trained
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONRegressor(designs=[Design()], max_steps=2, cv=2, verbose=False).fit(x, x[:, 0])
    assert {part.net.layers[0].weight.shape[-3] for part in model.net_.parts} == {FEW_WIDTH}


def test_few_rows_have_strong_strengths():
    factors = [_auto_factor(rows) for rows in (10, 100, 300, 1000, 2000, 10**6)]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] == factors[-2] == 1
    assert recipe(200).factor == _auto_factor(200) > 1
    assert recipe(200, reg_strength=1e-3).factor == 1  # what was asked for is what is meant


def test_automatic_strengths_are_even_in_the_logarithm():
    points, asked = _path_strengths("auto")
    assert points == asked
    assert len(points) == SNAPSHOTS
    assert (points[0], points[-1]) == (WEAKEST, STRONGEST)
    ratios = [b / a for a, b in pairwise(points)]
    assert max(ratios) == pytest.approx(min(ratios), rel=0.02)
    assert _path_strengths("auto", alone=True) == (
        (WEAKEST, FALLBACK_STRENGTH, FALLBACK_STRENGTH),
        (FALLBACK_STRENGTH,),
    )


@pytest.mark.parametrize(
    ("given", "alone", "points", "asked"),
    [
        (0.01, False, (WEAKEST, 0.01, 0.01), (0.01,)),  # the path rises to it, and stays
        (0.0, False, (0.0,), (0.0,)),
        (1e-5, False, (1e-5,), (1e-5,)),
        ([0.1, 1e-3], False, (1e-3, 0.1), (1e-3, 0.1)),
        ([0, 0.1], False, (0.0, 0.1), (0.0, 0.1)),
        ([1.0, 0.1], True, (WEAKEST, 0.1, 0.1), (0.1,)),  # the nearest to what would be used
        ([0.0, 1e-3], True, (WEAKEST, 1e-3, 1e-3), (1e-3,)),
    ],
)
def test_strengths_that_are_asked_for_are_on_the_path(given, alone, points, asked):
    assert _path_strengths(given, alone=alone) == (points, asked)


def test_tiny_tables_have_fewer_designs():
    assert recipe(TINY).designs == DESIGNS
    assert recipe(TINY - 1).designs == DESIGNS[:FEW_DESIGNS]
    assert recipe(30, alone=True).designs == DESIGNS[:1]
    own = [Design(pieces=k) for k in (2, 3, 4)]
    assert recipe(TINY - 1, designs=own).designs == tuple(own)  # what was asked for is trained


def test_only_designs_with_l1_directions_are_pruned():
    assert {d.directions for d in recipe(500, prune=True).designs} == {"l1"}
    with pytest.raises(ValueError, match=r"Pruning needs a design with directions 'l1'"):
        recipe(500, prune=True, designs=[Design(directions="l2")])


def test_rows_of_one_batch_are_trained_exactly_and_for_a_fixed_time():
    one, more = recipe(256), recipe(257)
    assert (one.plan.matmul_precision, more.plan.matmul_precision) == ("highest", "medium")
    assert (one.may_extend, more.may_extend) == (False, True)
    assert not recipe(5000, max_steps=100).may_extend
    assert not recipe(5000, alone=True).may_extend
    assert recipe(5000, max_steps=101).path.steps == 101
    assert recipe(5000).path.level == round(0.4 * recipe(5000).path.steps)
    assert recipe(100).plan.seed == 7


def test_early_snapshots_are_taken_where_strengths_are_free():
    level = recipe(100, max_steps=60).path.level
    assert recipe(100, max_steps=60).early == (round(level / 3), round(2 * level / 3))
    assert recipe(100, max_steps=60, reg_strength=(1e-3, 1e-2)).early == ()
    assert recipe(100, max_steps=2).early == ()
