"""Paths of strengths: the strength and the rate at each step."""

import pytest

from psilonnet.training import RisingPath


@pytest.mark.parametrize("steps", [(1, 1), (1, 3), (4, 40)])
def test_strengths_rise_from_the_weakest_also_where_steps_are_fewer_than_strengths(steps):
    path = RisingPath((1e-4, 1e-3, 1e-2, 1e-1), *steps, 4e-3)
    shares = [k / max(1, path.steps - 1) for k in range(path.steps)]
    strengths = [path.strength(share) for share in shares]
    assert strengths == sorted(strengths)
    assert strengths[0] == pytest.approx(1e-4)
    assert strengths[-1] <= 1e-1
    assert all(0 < path.rate(share) <= 4e-3 for share in shares)
    assert path.marks[-1] == path.steps
