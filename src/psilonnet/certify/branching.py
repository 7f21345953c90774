"""Proofs by cases: what one linear bound leaves open, the sign of one neuron after another decides.

Where a neuron is on one side of 0, its function is a line. So a box is divided into the inputs for
which a neuron is at least 0 and those for which it is at most 0, linear bounds are computed for
both, and so on for what is still open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.certify.combinations import Combinations
from psilonnet.certify.linear_bound import LinearBound

if TYPE_CHECKING:
    from psilonnet.certify.box import Box
    from psilonnet.nn import AveragedNet

TOGETHER = 16  # cases at a time


def falls_less_by_cases(
    net: AveragedNet, x: Tensor, box: Box, asked: Combinations, enough: Tensor, budget: int
) -> Tensor:
    """Return True for the rows none of whose combinations can fall by so much.

    Parameters
    ----------
    net : AveragedNet
    x : Tensor of shape (rows, in)
    box : Box
    asked : Combinations
    enough : Tensor of shape (rows, count)
    budget : int
        How many cases are looked at for each combination of each row.
    """
    found = torch.zeros(len(x), dtype=torch.bool)
    for row in range(len(x)):
        own = slice(row, row + 1)
        found[row] = all(
            _holds(
                net,
                x[own],
                box.at(own),
                Combinations(asked.table, asked.index[own, k : k + 1]),
                float(enough[row, k]),
                budget,
            )
            for k in range(asked.index.shape[1])
        )
    return found


def _holds(
    net: AveragedNet, x: Tensor, box: Box, asked: Combinations, enough: float, budget: int
) -> bool:
    """Return whether a combination of one row falls less in all cases."""
    sizes = [
        [layer.weight.shape[-1] for layer in part.net.layers[1:]]
        for part in net.parts
        for _ in range(part.members)
    ]
    widths = [width for own in sizes for width in own]
    left = torch.zeros(1, sum(widths), dtype=torch.int8)  # a row of signs for each case
    while len(left):
        now, left = left[-TOGETHER:], left[:-TOGETHER]
        budget -= len(now)
        if budget < 0 or not widths:
            return False
        flat = iter(torch.split(now, widths, dim=1))
        signs = [[next(flat) for _ in own] for own in sizes]
        rows = torch.zeros(len(now), dtype=torch.long)
        bound = LinearBound(net, x[rows], box.at(rows), signs)
        gaps: list[list[Tensor]] = []
        falls = bound.falls(asked.at(rows), gaps)[:, 0]
        far = torch.cat([gap[:, 0] for own in gaps for gap in reversed(own)], dim=1)
        far = torch.where(now == 0, far, 0.0)
        open_ = ~(bound.empty | (falls < enough))
        if bool((far[open_].amax(dim=1) <= 0).any()):
            return False  # the function is linear there, and no sign helps
        place = far[open_].argmax(dim=1, keepdim=True)
        cases = [now[open_].scatter(1, place, sign) for sign in (1, -1)]
        left = torch.cat((left, *cases))
    return True
