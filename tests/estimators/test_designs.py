"""What networks are made of, as data."""

import pytest
import torch

from psilonnet.estimators.designs import DESIGNS, Design, are_designs, designs_to_data, read_designs


def test_designs_become_networks():
    net = Design().make_network(3, 2, width=8, depth=2)
    assert [layer.normalization for layer in net.layers] == ["l1"] * 3
    assert net(torch.zeros(5, 3)).shape == (5, 2)
    rows = Design(directions="l2").make_network(3, 2, width=8, depth=2)
    assert [layer.normalization for layer in rows.layers] == ["l2"] * 3
    assert rows.layers[0].length.numel() == 8  # a length per row
    assert net.layers[0].length.numel() == 1  # a length per layer
    wide = Design(architecture="crelu").make_network(3, 1, width=8, depth=2)
    assert wide.layers[1].direction.numel() == 2 * net.layers[1].direction.numel()
    assert type(Design(architecture="resnet").make_network(3, 1, width=8, depth=2)) is not type(net)


def test_networks_are_of_float32_whatever_the_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        net = Design(architecture="resnet").make_network(3, 1, width=4, depth=1)
    finally:
        torch.set_default_dtype(before)
    assert {p.dtype for p in net.parameters()} == {torch.float32}


def test_designs_are_read_and_told_as_plain_data():
    given = [Design(pieces=4), {"directions": "l2"}]
    designs = read_designs(given)
    assert designs == (Design(pieces=4), Design(directions="l2"))
    assert read_designs(designs_to_data(given)) == designs
    assert designs_to_data("auto") == "auto"
    assert read_designs("auto") == DESIGNS


def test_designs_that_are_asked_for_must_differ():
    assert are_designs("auto")
    assert are_designs([Design(), {"pieces": 2}])
    assert are_designs((Design(),))
    for wrong in ("all", [], Design(), [Design(), {}], ["l1"], [{"knots": 3}], None):
        assert not are_designs(wrong), wrong


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (Design(), "L1"),
        (Design(directions="l2", pieces=8), "L2, 8 pieces"),
        (Design(columns="clipped", architecture="crelu"), "L1, clipped, crelu"),
    ],
)
def test_designs_in_words(design, words):
    assert design.in_words() == words


def test_wrong_designs_are_refused_in_words():
    with pytest.raises(ValueError, match=r"'directions' of a Design must be one of.*Got 'l3'"):
        Design(directions="l3")
    with pytest.raises(ValueError, match=r"'pieces' of a Design must be a whole number.*Got True"):
        Design(pieces=True)
