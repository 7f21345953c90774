"""A search within boxes for what moves outputs far: what a proof leaves open, it may decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psilonnet.certify.box import Box, Jump
    from psilonnet.nn import PlainNet

PART = 2**22  # numbers that are in memory for the searches made at a time
WIDE = 3  # first steps of a climb that go from side to side of the box
SHORTLIST = 3  # levels of a category that are tried in a step, those that the slope likes best


@dataclass(frozen=True)
class Effort:
    """How long an attack searches.

    Attributes
    ----------
    climbs : int
        How many climbs there are. The first starts from the row itself, the second from a corner of
        the box, and the others from anywhere in it.
    steps : int
        How many steps a climb takes along the signs of the gradient.
    stops : int
        At how many points, evenly from end to end, each column by itself is then tried, one column
        after the other; 0 leaves that out. Narrow ridges, as pieces of columns can make them,
        want many.
    seed : int
        The seed of the points that climbs start from.
    """

    climbs: int = 2
    steps: int = 20
    stops: int = 2
    seed: int = 0


DEFAULT = Effort()


class Found(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    points : Tensor of shape (rows, count, in)
        Encoded rows, each within the box of its row.
    moves : Tensor of shape (rows, count)
        By how much the combinations are larger there than at the row; at least 0.
    """

    points: Tensor
    moves: Tensor


@torch.no_grad()
def attack(
    net: AveragedNet | PlainNet,
    x: Tensor,
    box: Box,
    combinations: Tensor,
    *,
    enough: Tensor | None = None,
    effort: Effort = DEFAULT,
) -> Found:
    """Look for encoded rows within boxes that make combinations of averaged outputs large.

    What is found is a lower bound on what is possible. A search that finds nothing proves nothing.

    Parameters
    ----------
    net : AveragedNet or PlainNet
    x : Tensor of shape (rows, in)
    box : Box
        How far columns may move, and which of them may jump from level to level.
    combinations : Tensor of shape (rows, count, out)
    enough : Tensor of shape (rows, count), optional
        The search for a combination ends once it has moved that far.
    effort : Effort

    Examples
    --------
    >>> from psilonnet.certify.box import Box
    >>> net = AveragedNet.of(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    >>> x, up = torch.zeros(1, 2, dtype=torch.float64), torch.ones(1, 1, 1, dtype=torch.float64)
    >>> moves = attack(net, x, Box.of([[0.5, 0.0]]), up).moves
    >>> bool(moves == 0.5 * net.parts[0].net.layers[0].weight.flatten()[0].abs())
    True
    """
    net = AveragedNet.of(net)
    count = combinations.shape[1]
    base = torch.einsum("rco,ro->rc", combinations, net(x))
    goal = torch.full_like(base, torch.inf) if enough is None else base + enough
    whole = _Search(
        net,
        x.repeat_interleave(count, dim=0),
        box.radius.repeat_interleave(count, dim=0),
        box.jumps,
        combinations.flatten(0, 1),
        goal.flatten(),
    )
    generator = torch.Generator().manual_seed(effort.seed)
    layers = [layer for part in net.parts for layer in part.net.layers]
    size = max(1, PART // sum(layer.weight[:, 0].numel() for layer in layers))
    ends = [
        _farthest(whole.at(own), effort, generator)
        for own in torch.split(torch.arange(len(whole.x)), size)
    ]
    points = torch.cat([x[:0], *ends]).reshape(*base.shape, x.shape[1])
    reached = net(points.flatten(0, 1)).reshape(*base.shape, net.outputs)
    moves = torch.einsum("rco,rco->rc", combinations, reached) - base
    better = moves > 0
    return Found(torch.where(better.unsqueeze(-1), points, x.unsqueeze(1)), moves.clamp(min=0.0))


@dataclass(frozen=True)
class _Search:
    """What is searched: a direction of outputs for each row, each in its box."""

    net: AveragedNet
    x: Tensor  # (searches, in)
    radius: Tensor  # (searches, in)
    jumps: tuple[Jump, ...]
    direction: Tensor  # (searches, out)
    goal: Tensor  # (searches,)

    def at(self, own: Tensor) -> _Search:
        """Return some of the searches."""
        parts = {name: getattr(self, name)[own] for name in ("x", "radius", "direction", "goal")}
        return replace(self, **parts)

    def inside(self, points: Tensor) -> Tensor:
        """Pull points back into the boxes; what may jump or stays is left as it is."""
        pulled = torch.minimum(torch.maximum(points, self.x - self.radius), self.x + self.radius)
        return torch.where(self.radius > 0, pulled, points)

    def value(self, points: Tensor) -> Tensor:
        """Return the combination at points, which autograd can follow."""
        outputs = points.new_zeros(len(points), self.net.outputs)
        for part in self.net.parts:
            h = part.see(points).expand(part.members, -1, -1)
            for layer in part.net.layers:
                h = layer(h)
            outputs = outputs + torch.einsum("m,mro->ro", part.weight, h)
        return (self.direction * outputs).sum(dim=-1)

    def slope(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the combination and its gradient at points."""
        with torch.enable_grad():
            points = points.detach().requires_grad_()
            value = self.value(points)
            (gradient,) = torch.autograd.grad(value.sum(), points)
        return value.detach(), gradient


class _Best:
    """The farthest points so far."""

    def __init__(self, search: _Search) -> None:
        self.search = search
        self.points, self.value = search.x.clone(), search.value(search.x)

    def keep(self, points: Tensor, value: Tensor) -> None:
        """Keep points that are farther than what was there."""
        better = value > self.value
        self.points = torch.where(better.unsqueeze(-1), points, self.points)
        self.value = torch.where(better, value, self.value)

    def try_(self, points: Tensor) -> None:
        """Keep points if they are farther."""
        self.keep(points, self.search.value(points))


def _farthest(search: _Search, effort: Effort, generator: torch.Generator) -> Tensor:
    """Return the farthest points found, of shape (searches, in)."""
    points = search.x.clone()
    left = torch.arange(len(points))  # those that are not far enough yet
    for number in range(effort.climbs):
        own = search.at(left)
        best = _Best(own)
        best.try_(points[left])
        _climb(best, _start(own, number, generator), effort.steps)
        if effort.stops:
            _sweep(best, effort.stops)
        points[left] = best.points
        left = left[~(best.value >= own.goal)]
        if not len(left):
            break
    return points


def _start(search: _Search, number: int, generator: torch.Generator) -> Tensor:
    """Return where a climb starts: at the row, at a corner of its box, or anywhere in it."""
    if number == 0:
        return search.x
    share = torch.rand(search.x.shape, generator=generator, dtype=torch.float64) * 2 - 1
    points = search.inside(search.x + search.radius * (share.sign() if number == 1 else share))
    for places, states in _jumps(search):
        chosen = torch.randint(len(states), (len(points),), generator=generator)
        points[:, places] = states[chosen]
    return points


def _climb(best: _Best, points: Tensor, steps: int) -> None:
    """Follow the signs of the gradient, and try other levels on the way."""
    search = best.search
    for step in range(steps):
        value, gradient = search.slope(points)
        best.keep(points, value)
        rate = 1.0 if step < WIDE else 0.5 * (1 - step / steps)
        points = search.inside(points + rate * search.radius * gradient.sign())
        if search.jumps and step % WIDE == 0:
            points = _other_levels(search, points, gradient)
    best.try_(points)


def _other_levels(search: _Search, points: Tensor, gradient: Tensor) -> Tensor:
    """Return points at better levels, among those that a slope promises most of."""
    value = search.value(points)
    for places, states in _jumps(search):
        promised = (gradient[:, places] @ states.mT).topk(min(SHORTLIST, len(states))).indices
        for k in promised.unbind(dim=1):
            there = points.clone()
            there[:, places] = states[k]
            reached = search.value(there)
            better = reached > value
            points = torch.where(better.unsqueeze(-1), there, points)
            value = torch.where(better, reached, value)
    return points


def _sweep(best: _Best, stops: int) -> None:
    """Move each column by itself from end to end of its box, or to each of its levels."""
    search = best.search
    shares = torch.linspace(-1, 1, stops, dtype=torch.float64).tolist()
    for column in search.radius.any(dim=0).nonzero().flatten().tolist():
        for share in shares:
            there = best.points.clone()
            there[:, column] = search.x[:, column] + share * search.radius[:, column]
            best.try_(there)
    for places, states in _jumps(search):
        for state in states:
            there = best.points.clone()
            there[:, places] = state
            best.try_(there)


def _jumps(search: _Search) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield places and states of the columns that may jump."""
    for jump in search.jumps:
        yield torch.as_tensor(jump.places), torch.as_tensor(jump.states)
