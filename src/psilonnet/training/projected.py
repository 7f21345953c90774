"""Projected gradient descent: after each step, rows go back into the L1 ball (Pj)."""

import torch

from psilonnet.functional import project_ball, row_norm
from psilonnet.nn import Network


@torch.no_grad()
def project_directions_(net: Network) -> None:
    """Project every row of every direction into the unit ball, in place."""
    for layer in net.layers:
        v = layer.direction
        outside = row_norm(v) > 1  # about half of the rows after a step
        v[outside] = project_ball(v[outside])
