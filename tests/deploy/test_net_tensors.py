"""Networks as tensors of a file, and back to the last bit; wrong files are in test_loading."""

from dataclasses import replace

import pytest
import torch

from deploy.several_maps import several_maps
from psilonnet.deploy import (
    ModelFileError,
    compact_parts,
    net_from_tensors,
    net_to_tensors,
    read_model_file,
    write_model_file,
)
from psilonnet.nn import AveragedNet

NUMBERS = torch.tensor([True, True, False, True, True])


def through_file(net, path, numbers=NUMBERS):
    facts, tensors = net_to_tensors(net)
    write_model_file(path, {"parts": facts}, tensors)
    manifest, tensors = read_model_file(path)
    return net_from_tensors(manifest["parts"], tensors, numbers=numbers, outputs=2)


def test_networks_of_several_shapes_and_maps_come_back_to_the_last_bit(tmp_path):
    net = several_maps(torch.Generator().manual_seed(0))
    live = [part for whole in net.parts for part in compact_parts(whole)]
    x = 3 * torch.randn(100, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for parts in (net.parts, live, [*live[:4], *net.parts[2:]]):
        own = AveragedNet(parts, 5)
        again = through_file(own, tmp_path / "net")
        assert again(x).equal(own(x))
        assert (again.columns, again.outputs, again.members) == (5, 2, own.members)
        for a, b in zip(again.parts, own.parts, strict=True):
            assert a.weight.equal(b.weight)
            assert a.inputs.equal(b.inputs)
            assert a.columns.bend == b.columns.bend
            assert [layer.split for layer in a.net.layers] == [
                layer.split for layer in b.net.layers
            ]


def test_parts_may_share_their_tensors(tmp_path):
    net = several_maps(torch.Generator().manual_seed(0))
    first = net.parts[0]
    halves = [replace(part, weight=part.weight / 2) for part in (*net.parts, *net.parts)]
    both = AveragedNet(halves, 5)
    assert both.parts[0].inputs is both.parts[4].inputs is first.inputs
    x = torch.randn(10, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert through_file(both, tmp_path / "net")(x).equal(both(x))


def test_numbers_of_more_digits_are_an_error(tmp_path):
    net = several_maps(torch.Generator().manual_seed(0))
    net.parts[1].net.layers[0].bias[0, 0] += 2.0**-40
    with pytest.raises(RuntimeError, match=r"numbers of float32. '1.0.bias' holds others"):
        through_file(net, tmp_path / "net")


def test_columns_of_the_table_and_of_the_networks_must_agree(tmp_path):
    net = several_maps(torch.Generator().manual_seed(0))
    with pytest.raises(ModelFileError, match="does not hold numbers"):
        through_file(net, tmp_path / "net", NUMBERS.logical_not())
    with pytest.raises(ModelFileError, match="not sorted columns"):
        through_file(net, tmp_path / "net", NUMBERS[:4])
