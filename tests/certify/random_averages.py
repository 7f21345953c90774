"""Random networks of all kinds, and averages of two kinds behind maps of their own."""

import torch

from psilonnet.nn import (
    VARIANTS,
    AveragedNet,
    ColumnMap,
    Part,
    PlainNet,
    PSiLONNet,
    PSiLONResNet,
    make_net,
)
from psilonnet.training import stack_members


def random_net(generator, kind, n_in=None, n_out=None):
    """Return a random net of a kind, with lengths that make it far from its start."""

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=generator))

    n_in, n_out = n_in or number(1, 6), n_out or number(1, 4)
    width, depth = number(2, 12), number(1, 4)
    shape = {"width": width, "depth": depth, "generator": generator}
    if kind in VARIANTS:
        net = make_net(kind, n_in, n_out, **shape)
    elif kind == "knots":
        edges = torch.randn(number(1, 7), n_in, generator=generator).sort(dim=0).values
        net = PSiLONNet(n_in, n_out, edges=edges, **shape)
    elif kind == "ensemble":
        net = stack_members([PSiLONResNet(n_in, n_out, **shape) for _ in range(3)])
    else:
        net = PSiLONNet(n_in, n_out, activation="crelu", **shape)
        net.set_prune_mix(1.0)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.5)
    return net


KINDS = [*VARIANTS, "knots", "ensemble", "pruned crelu"]


def random_part(generator, kind, columns, n_out, bent, share):
    """Return a part that reads some of the columns."""
    count = int(torch.randint(1, columns + 1, (), generator=generator))
    inputs = torch.randperm(columns, generator=generator)[:count].sort().values
    net = PlainNet(random_net(generator, kind, count, n_out))
    bend = ("identity", "log_tails", "clipped")[int(torch.randint(3, (), generator=generator))]
    center = 2 * torch.randn(columns, generator=generator, dtype=torch.float64)
    scale = 10.0 ** torch.randn(columns, generator=generator, dtype=torch.float64)
    map_ = ColumnMap.of(bend, bent, center, scale)
    weight = torch.rand(len(net.layers[0].weight), generator=generator, dtype=torch.float64) + 0.1
    return Part(net, share * weight / weight.sum(), map_.at(inputs), inputs)


def random_average(generator, kinds, columns=None, bent=None):
    """Return an average of two parts of unequal weights and different shapes."""
    columns = columns or int(torch.randint(2, 7, (), generator=generator))
    n_out = int(torch.randint(1, 5, (), generator=generator))
    if bent is None:
        bent = torch.rand(columns, generator=generator) < 0.7
    parts = [
        random_part(generator, kind, columns, n_out, bent, share)
        for kind, share in zip(kinds, (0.7, 0.3), strict=True)
    ]
    return AveragedNet(parts, columns)
