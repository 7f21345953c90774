import copy

from psilonnet.training import take_members, warm_path
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
