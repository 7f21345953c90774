"""Networks with random parameters, away from their start."""

import torch

from psilonnet.nn import (
    PSiLONNet,
    PSiLONResNet,
)


def scramble_(net, generator):
    """Give a network random parameters with non-zero lengths."""
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.copy_(torch.randn(layer.direction.shape, generator=generator))
            if layer.length is not None:
                scale = 1 / len(net.layers) if layer.residual else 1.5
                layer.length.copy_(
                    scale * (0.5 + torch.rand(layer.length.shape, generator=generator))
                )
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=generator))
            if layer.normalization == "ball":
                layer.direction.div_(1 + layer.direction.abs().amax(-2).sum(-1)[..., None, None])
    return net


def make_edges(pieces, columns, generator):
    return torch.randn(pieces - 1, columns, generator=generator).sort(dim=0).values


def make_random_net(kind, depth, generator, pieces=1, width=16):
    edges = None if pieces == 1 else make_edges(pieces, 6, generator)
    if kind == "residual":
        net = PSiLONResNet(6, 3, width=width, depth=depth, edges=edges)
    else:
        net = PSiLONNet(6, 3, width=width, depth=depth, activation=kind, edges=edges)
    return scramble_(net.double(), generator)
