from psilonnet import PSiLONRegressor
from psilonnet.nn import AveragedNet
from psilonnet.report.facts import network_of
from report.pages import FIXED, page_of, rows


def test_numbers_of_the_network_are_those_of_the_pruned_net(tmp_path):
    frame, y = rows(60)
    model = PSiLONRegressor(**FIXED, prune=True).fit(frame, y)
    layers = [layer for part in model.net_.parts for layer in part.net.layers]
    nonzero = sum(int((layer.weight != 0).sum()) for layer in layers)
    total = sum(layer.weight.numel() for layer in layers)
    assert 0 < nonzero < total
    assert f"Of {total:,} weights, {nonzero:,} are not zero" in page_of(model, tmp_path).text


def test_all_parts_are_counted():
    frame, y = rows(60)
    model = PSiLONRegressor(**{**FIXED, "knots": 0, "depth": 2, "width": 8}).fit(frame, y)
    other = PSiLONRegressor(**{**FIXED, "knots": 3, "depth": 1, "width": 16}).fit(frame, y)
    one, two = network_of(model), network_of(other)
    model.net_ = AveragedNet(model.net_.weighed(0.5) + other.net_.weighed(0.5), model.net_.columns)
    both = network_of(model)
    assert both.members == one.members + two.members
    assert both.weights == one.weights + two.weights
    assert both.nonzero == one.nonzero + two.nonzero
    assert both.sizes == [model.net_.columns, 12.0, 8.0, 1.0]  # a second layer only one has
