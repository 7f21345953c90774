"""Views of the columns: each map is computed once, and all parts find their columns in it."""

from dataclasses import replace

import torch

from deploy.several_maps import several_maps
from psilonnet.deploy.views import shared_views
from psilonnet.nn import AveragedNet, ColumnMap


def assert_all_is_seen(net):
    views, own = shared_views(net)
    x = 3 * torch.randn(20, net.columns, dtype=torch.float64)
    for part, v in zip(net.parts, own, strict=True):
        seen = views[v].columns(x[:, views[v].inputs])
        assert seen[:, views[v].places(part)].equal(part.see(x))
    return views, own


def test_parts_with_one_map_share_a_view():
    net = several_maps(torch.Generator().manual_seed(0))
    views, own = assert_all_is_seen(net)
    assert own == [0, 1, 1, 2]
    assert [view.inputs.tolist() for view in views] == [
        [0, 1, 2, 3, 4],
        [0, 1, 2, 4],
        [0, 1, 2, 3, 4],
    ]


def test_maps_that_differ_in_one_column_are_two_views():
    net = several_maps(torch.Generator().manual_seed(0))
    for name in ("bent", "center", "scale"):
        values = {
            word: getattr(net.parts[2].columns, word).clone()
            for word in ("bent", "center", "scale")
        }
        if name == "bent":
            values = {"bent": values["bent"] & False, "center": None, "scale": None}
            values["bent"][2] = True  # column 4; column 1 is no longer bent
        else:
            values[name][0] += 0.25
        columns = ColumnMap.of("log_tails", *values.values())
        parts = [*net.parts[:2], replace(net.parts[2], columns=columns), net.parts[3]]
        _, own = assert_all_is_seen(AveragedNet(parts, 5))
        assert own == [0, 1, 2, 3]


def test_columns_that_are_left_as_they_are_are_all_encoded_columns():
    net = several_maps(torch.Generator().manual_seed(0))
    part = net.parts[1]
    plain = replace(part, columns=ColumnMap.of("log_tails", torch.zeros(3, dtype=torch.bool)))
    views, own = assert_all_is_seen(AveragedNet([plain, net.parts[0]], 5))
    assert own == [0, 0]
    assert views[0].inputs.tolist() == [0, 1, 2, 3, 4]
