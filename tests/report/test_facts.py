import numpy as np

from psilonnet import Design, PSiLONRegressor
from psilonnet.nn import AveragedNet
from psilonnet.report.facts import changed_parameters, design_words, fit_words, network_of
from report.pages import FIXED, SMALL, page_of, rows


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
    model = PSiLONRegressor(**{**FIXED, "depth": 2, "width": 8}).fit(frame, y)
    other = PSiLONRegressor(
        **{**FIXED, "designs": [Design(pieces=3)], "depth": 1, "width": 16}
    ).fit(frame, y)
    one, two = network_of(model), network_of(other)
    model.net_ = AveragedNet(model.net_.weighed(0.5) + other.net_.weighed(0.5), model.net_.columns)
    both = network_of(model)
    assert both.members == one.members + two.members
    assert both.weights == one.weights + two.weights
    assert both.nonzero == one.nonzero + two.nonzero
    assert both.sizes == [model.net_.columns, 12.0, 8.0, 1.0]  # a second layer only one has


def test_designs_are_told_in_plain_words():
    assert design_words(Design()) == (
        "L1 directions, ReLU layers, numbers with tails like a logarithm"
    )
    other = Design(columns="clipped", directions="l2", pieces=8, architecture="resnet")
    assert design_words(other) == (
        "L2 directions, residual CReLU blocks, numbers clipped smoothly, each column in 8 pieces"
    )


def test_a_fit_is_told_in_plain_words():
    frame, y = rows(60)
    said = fit_words(PSiLONRegressor(**SMALL, selection=0.02).fit(frame, y))
    assert said.startswith("2 designs of networks were trained 2 times, each time without the rows")
    assert "26 snapshots were kept on the way" in said
    assert "(selection 0.02)" in said
    assert "exact zeros" not in said
    said = fit_words(PSiLONRegressor(**FIXED, prune=True).fit(frame, y))
    assert said.startswith("One design of networks was trained 2 times")
    assert "one snapshot was kept" in said
    assert said.endswith("What was chosen was then trained on towards exact zeros.")


def test_settings_of_a_page_are_those_that_a_file_holds():
    splits = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    names = [name for name, _, _ in changed_parameters(PSiLONRegressor(cv=splits))]
    assert names == []
    assert changed_parameters(PSiLONRegressor(cv=3)) == [("cv", "3", "None")]
