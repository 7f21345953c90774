"""An average of networks of several shapes, each behind its own map of the columns."""

from dataclasses import replace

import torch

from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainNet, PSiLONNet


def several_maps(generator):
    """Return an average of networks of four shapes and maps, two of which read fewer columns."""
    bent = torch.tensor([True, True, False, True, True])
    center, scale = torch.linspace(-1, 1, 5), torch.linspace(0.5, 2, 5)
    plans = [
        ("identity", [0, 1, 2, 3, 4], 0.1, 3),
        ("log_tails", [0, 1, 2], 0.2, 0),
        ("log_tails", [1, 2, 4], 0.3, 3),
        ("clipped", [0, 1, 2, 3, 4], 0.4, 0),
    ]
    parts = []
    for bend, inputs, share, knots in plans:
        own = torch.tensor(inputs)
        edges = torch.randn(knots, len(own), generator=generator).sort(dim=0).values
        shape = {"width": 8 + knots, "depth": 2, "members": (2,), "generator": generator}
        net = PSiLONNet(len(own), 2, edges=edges if knots else None, **shape)
        weight = torch.tensor([share / 4, 3 * share / 4], dtype=torch.float64)
        columns = ColumnMap.of(bend, bent, center, scale).at(own)
        parts.append(Part(_with_biases(PlainNet(net), generator), weight, columns, own))
    return AveragedNet(parts, 5)


def _with_biases(net, generator):
    layers = [
        replace(layer, bias=torch.randn(layer.bias.shape, generator=generator).double())
        for layer in net.layers
    ]
    return PlainNet.of_layers(layers)
