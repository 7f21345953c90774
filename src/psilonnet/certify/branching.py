"""Proofs by cases: what one linear bound leaves open, smaller boxes and fixed signs decide.

A case is a part of a box, and signs that some neurons have there. It is divided in two ways: a
column is halved, or a category's states are taken one by one; or a neuron is at least 0, or at most
0, and then its function is a line. Linear bounds are computed for each case, and what is still open
is divided again. A fixed sign narrows the neuron and those after it, not the box; so halved columns
are what decides in the end, and where many columns move that end can be far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.certify.column_sums import InputBox
from psilonnet.certify.combinations import Combinations
from psilonnet.certify.linear_bound import LinearBound, Slack
from psilonnet.certify.rounding import LOST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psilonnet.certify.box import Box
    from psilonnet.nn import AveragedNet

TOGETHER = 16  # cases at a time
FEW = 4  # columns that move: of so many the halves alone decide soonest
TURN = 0.05  # of the largest part in a bound: what a column counts for that was never halved


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
        whole = InputBox.of(x[own], box.at(own))
        found[row] = all(
            _Question(
                net,
                x[own],
                whole,
                Combinations(asked.table, asked.index[own, k : k + 1]),
                float(enough[row, k]),
            ).holds(budget)
            for k in range(asked.index.shape[1])
        )
    return found


@dataclass(frozen=True)
class _Case:
    """A part of a box.

    Attributes
    ----------
    low, high : Tensor of shape (columns,)
    jumps : tuple of int
        Which categories still take any state.
    signs : Tensor of shape (neurons,)
        1 or -1 for a neuron that is at least, or at most, 0; else 0.
    depth : int
        How often it was divided.
    """

    low: Tensor
    high: Tensor
    jumps: tuple[int, ...]
    signs: Tensor
    depth: int = 0


@dataclass(frozen=True)
class _Question:
    """Whether a combination of the outputs of one row falls by less than enough in a box."""

    net: AveragedNet
    x: Tensor  # (1, columns)
    whole: InputBox
    asked: Combinations
    enough: float

    def holds(self, budget: int) -> bool:
        """Return whether it was proven within a number of cases."""
        if self.enough == torch.inf:
            return True
        signs = torch.zeros(sum(w for own in self._widths() for w in own), dtype=torch.int8)
        jumps = tuple(range(len(self.whole.states)))
        left = [_Case(self.whole.low[0], self.whole.high[0], jumps, signs)]
        while left:
            now = [left.pop()]
            while left and len(now) < TOGETHER and left[-1].jumps == now[0].jumps:
                now.append(left.pop())
            budget -= len(now)
            if budget < 0:
                return False
            for parts in self._open(now):
                if not parts:
                    return False  # a point, or numbers that are not finite
                left.extend(parts)
        return True

    def _widths(self) -> list[list[int]]:
        """Return how many neurons there are, for each network and layer above the first."""
        return [
            [layer.weight.shape[-1] for layer in part.net.layers[1:]]
            for part in self.net.parts
            for _ in range(part.members)
        ]

    def _open(self, cases: list[_Case]) -> Iterator[list[_Case]]:
        """Yield the parts of the cases that one bound leaves open."""
        signs = torch.stack([case.signs for case in cases])
        widths = self._widths()
        flat = iter(torch.split(signs, [w for own in widths for w in own], dim=1))
        states = tuple(self.whole.states[k] for k in cases[0].jumps)
        low, high = (torch.stack([getattr(c, end) for c in cases]) for end in ("low", "high"))
        inputs = InputBox(low, high, states)
        rows = torch.zeros(len(cases), dtype=torch.long)
        fixed = [[next(flat) for _ in own] for own in widths]
        bound = LinearBound(self.net, self.x[rows], inputs, fixed)
        slack = Slack()
        falls = bound.falls(self.asked.at(rows), slack)[:, 0]
        gaps = [gap[:, 0] for own in slack.neurons for gap in reversed(own)]
        far = torch.where(
            signs == 0, torch.cat([falls.new_zeros(len(cases), 0), *gaps], dim=1), 0.0
        )
        for k in (~(bound.empty | (falls < self.enough))).nonzero().flatten().tolist():
            wide = [slack.columns[k], *(own[k, None] for own in slack.states)]
            yield self._parts(cases[k], far[k], torch.cat(wide))

    def _parts(self, case: _Case, far: Tensor, wide: Tensor) -> list[_Case]:
        """Return a case in parts: by a column, and where many move, every other time by a sign."""
        width = self.whole.high[0] - self.whole.low[0]
        many = int((width > 0).sum()) + len(self.whole.states) > FEW
        if many and case.depth % 2 == 0 and bool((far > 0).any()):
            place = far.argmax()
            signs = [case.signs.index_fill(0, place, sign) for sign in (1, -1)]
            return [replace(case, signs=own, depth=case.depth + 1) for own in signs]
        share = ((case.high - case.low) / width).nan_to_num(0.0)
        share = torch.cat((share, torch.ones(len(case.jumps))))
        wide = torch.where(share > 0, wide + TURN * share * (wide.max() + LOST), -1.0)
        place = wide.argmax()
        if not wide[place] > 0:
            return []
        if place >= len(width):
            return self._by_state(case, int(place) - len(width))
        middle = (case.low[place] + case.high[place]) / 2
        if not case.low[place] < middle < case.high[place]:
            return []
        return [
            replace(case, high=case.high.index_fill(0, place, middle), depth=case.depth + 1),
            replace(case, low=case.low.index_fill(0, place, middle), depth=case.depth + 1),
        ]

    def _by_state(self, case: _Case, number: int) -> list[_Case]:
        """Return a case for each state of one of the categories that still take any."""
        rest = case.jumps[:number] + case.jumps[number + 1 :]
        return [
            _Case(case.low + state, case.high + state, rest, case.signs, case.depth + 1)
            for state in self.whole.states[case.jumps[number]]
        ]
