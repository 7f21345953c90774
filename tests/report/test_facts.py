from psilonnet import PSiLONRegressor
from psilonnet.nn import KnotLinear
from psilonnet.report.facts import network_of
from report.pages import FIXED, page_of, rows


def test_numbers_of_the_network_are_those_of_the_pruned_net(tmp_path):
    frame, y = rows(60)
    model = PSiLONRegressor(**FIXED, prune=True).fit(frame, y)
    nonzero = sum(int((layer.weight != 0).sum()) for layer in model.net_.layers)
    total = sum(layer.weight.numel() for layer in model.net_.layers)
    assert f"Of {total:,} weights, {nonzero:,} are not zero" in page_of(model, tmp_path).text


def test_only_pieces_in_reach_are_counted():
    frame, y = rows(60)
    model = PSiLONRegressor(**{**FIXED, "knots": 0}).fit(frame, y)
    expected = network_of(model)
    model.net_[0] = KnotLinear.unsplit(model.net_[0], 5)
    assert network_of(model) == expected
