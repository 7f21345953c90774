import copy

import pytest

from psilonnet.training import RisingPath, take_members, warm_path
from training.small_runs import run_of, small_net


def test_warm_path_starts_each_strength_from_the_weights_before():
    starts = []

    def make_run(net, strength):
        starts.append((strength, copy.deepcopy(net)))
        return run_of(net, strengths=strength, steps=20)

    start = take_members(small_net(count=1), 0)
    runs = list(warm_path(start, [1e-1, 1e-3, 1e-2], make_run))
    assert [strength for strength, _ in runs] == [1e-3, 1e-2, 1e-1]
    assert starts[0][1].layers[0].direction[0].equal(start.layers[0].direction)
    for (_, before), (_, after) in zip(runs, starts[1:], strict=False):
        for a, b in zip(before.net.parameters(), after.parameters(), strict=True):
            assert a.equal(b)


@pytest.mark.parametrize("steps", [(1, 1), (1, 3), (4, 40)])
def test_strengths_rise_also_where_steps_are_fewer_than_strengths(steps):
    path = RisingPath((1e-4, 1e-3, 1e-2, 1e-1), *steps, 4e-3)
    shares = [k / (path.steps - 1) for k in range(path.steps)]
    strengths = [path.strength(share) for share in shares]
    assert strengths == sorted(strengths)
    assert strengths[0] == pytest.approx(1e-4)
    assert strengths[-1] <= 1e-1
    assert all(0 < path.rate(share) <= 4e-3 for share in shares)
    assert path.marks[-1] == path.steps
