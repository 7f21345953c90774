"""The farthest moves that the library's own attack finds, up or down."""

import torch

from psilonnet.certify import Box, Effort, attack


def farthest_moves(net, x, radius, combinations, seed=0):
    """Return how far combinations were seen to move, of shape (rows, count)."""
    both = torch.cat([combinations, -combinations], dim=1)
    moves = attack(net, x, Box.of(radius), both, effort=Effort(climbs=3, seed=seed)).moves
    return torch.maximum(*moves.chunk(2, dim=1))
