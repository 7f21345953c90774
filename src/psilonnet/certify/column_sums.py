"""The least value, within boxes, of a sum of functions of single columns.

What a linear bound leaves at the inputs of networks is such a sum: a combination of the pieces of
each column, for every network of an average. The functions of a column are added first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.certify.rounding import LOST, gamma, open_ends

if TYPE_CHECKING:
    from psilonnet.certify.box import Box
    from psilonnet.nn import ColumnMap, PlainLayer

FINER = 4  # parts of a segment between two kinks, where a column is seen through several maps


@dataclass(frozen=True)
class InputBox:
    """Ends of boxes, rounded outward, and what jumps.

    Attributes
    ----------
    low, high : Tensor of shape (rows, columns)
        0 for columns that jump.
    states : tuple of Tensor of shape (states, columns)
        One for each jump; 0 for all columns but its own.
    """

    low: Tensor
    high: Tensor
    states: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, x: Tensor, box: Box) -> InputBox:
        """Return the ends of a box around rows."""
        spread = box.radius + ((x.abs() + box.radius) * gamma(3) + LOST) * box.radius.sign()
        low, high = open_ends(x - spread, x + spread)
        states = []
        for jump in box.jumps:
            places = torch.as_tensor(jump.places)
            low[:, places] = high[:, places] = 0.0
            own = x.new_zeros(len(jump.states), x.shape[1])
            own[:, places] = torch.as_tensor(jump.states, dtype=x.dtype)
            states.append(own)
        return cls(low, high, tuple(states))

    def seen(self, columns: ColumnMap) -> InputBox:
        """Return what is seen of it through a map of the columns: it increases."""
        if not columns.bends:
            return self
        low = columns(self.low) - columns.rounding(self.low)
        high = columns(self.high) + columns.rounding(self.high)
        return InputBox(*open_ends(low, high), self.states)

    def at(self, inputs: Tensor) -> InputBox:
        """Return the box of some columns."""
        if len(inputs) == self.low.shape[1]:
            return self
        states = tuple(states[:, inputs] for states in self.states)
        return InputBox(self.low[:, inputs], self.high[:, inputs], states)

    def cut(self, kinks: Tensor) -> Tensor:
        """Return the ends and the kinks between them: (rows, points, columns), in order."""
        low, high = self.low.unsqueeze(1), self.high.unsqueeze(1)
        inside = (kinks > low) & (kinks < high)
        found = torch.where(inside, kinks, high).sort(dim=1).values
        count = int(inside.sum(dim=1).max()) if inside.numel() else 0
        return torch.cat((low, found[:, :count], high), dim=1)


def kinks_of(layer: PlainLayer) -> Tensor:
    """Return where the pieces of a first layer have kinks, of shape (kinks, in)."""
    if layer.edges is not None:
        edges: Tensor = torch.unique(layer.edges, dim=0)
        return edges.flatten(0, 1)
    return layer.weight.new_zeros(int(layer.split != "none"), layer.weight.shape[-1])


def finer(points: Tensor) -> Tensor:
    """Return points with others between them."""
    share = torch.arange(FINER, dtype=points.dtype).unsqueeze(1) / FINER
    start, step = points[:, :-1].unsqueeze(2), points.diff(dim=1).unsqueeze(2)
    between = torch.minimum(start + share * step, points[:, 1:].unsqueeze(2))
    return torch.cat((between.flatten(1, 2), points[:, -1:]), dim=1)


@dataclass(frozen=True)
class Sight:
    """What one network sees of the points of a box.

    Attributes
    ----------
    points : Tensor of shape (rows, points, columns)
    inputs : Tensor of shape (in,)
        Which columns it reads.
    values : Tensor of shape (rows, points, pieces, in)
    strays : Tensor of shape (rows, points - 1, pieces, in), or None
        How far a piece can stray from its chord on a segment; None where none does.
    off : Tensor of shape (rows, pieces * in)
        By how much a piece can differ from what is computed for it.
    states : tuple of Tensor of shape (states, pieces * in)
    """

    points: Tensor
    inputs: Tensor
    values: Tensor
    strays: Tensor | None
    off: Tensor
    states: tuple[Tensor, ...]

    @classmethod
    def of(
        cls,
        layer: PlainLayer,
        inputs: Tensor,
        points: Tensor,
        states: tuple[Tensor, ...],
        columns: ColumnMap | None = None,
    ) -> Sight:
        """Return what the first layer of one network sees, through a map if there is one.

        Parameters
        ----------
        layer : PlainLayer of one member
        inputs : Tensor of shape (in,)
        points : Tensor of shape (rows, points, columns)
            Without a map, all kinks within the box are among them.
        states : tuple of Tensor of shape (states, columns)
        columns : ColumnMap, optional
            Of the inputs.
        """
        x = points[..., inputs]
        seen = x if columns is None else columns(x)
        values = _pieces(layer, seen)
        known = tuple(_pieces(layer, own[:, inputs]).flatten(-2) for own in states)
        if columns is None:
            off = x.new_zeros(len(x), values[0, 0].numel())
            return cls(points, inputs, values, None, off, known)
        rounding = columns.rounding(x)
        strays = _strays(columns, x, seen, rounding, values)
        off = rounding.amax(dim=1).unsqueeze(1).expand(-1, values.shape[2], -1).flatten(1)
        return cls(points, inputs, values, strays, off, known)


def _pieces(layer: PlainLayer, x: Tensor) -> Tensor:
    """Return pieces of shape (..., pieces, in)."""
    pieces = layer.pieces(x.flatten(0, -2).unsqueeze(0))
    return pieces.reshape(*x.shape[:-1], *pieces.shape[-2:])


def _strays(
    columns: ColumnMap, x: Tensor, seen: Tensor, rounding: Tensor, values: Tensor
) -> Tensor:
    """Return how far each piece can be from its chord, as a function of the unmapped column.

    A piece rises from one end of a segment to the other, so it strays by its own rise at most; and
    what it lacks of the map rises, too, so it strays by the map's bend and the rise of the rest.
    """
    width = x.diff(dim=1)
    bend = torch.minimum(columns.curvature * width * width / 8, seen.diff(dim=1))
    own = values.diff(dim=1)  # (rows, segments, pieces, in)
    rest = seen.diff(dim=1).unsqueeze(2) - own
    size = seen.abs().amax(dim=1) + 4 * rounding.amax(dim=1)
    slack = 4 * rounding.amax(dim=1) + gamma(16) * size + LOST
    return torch.minimum(own, bend.unsqueeze(2) * (1 + gamma(8)) + rest) + slack[:, None, None]


class ColumnSums:
    """A sum of functions of columns, added up network by network.

    Parameters
    ----------
    points : Tensor of shape (rows, points, columns)
    states : tuple of Tensor of shape (states, columns)
    count : int
        How many sums for each row.
    terms : int
        No fewer than the products of a sum.
    """

    def __init__(self, points: Tensor, states: tuple[Tensor, ...], count: int, terms: int) -> None:
        rows, n, columns = points.shape
        self._values = points.new_zeros(rows, columns, count, n)
        self._strays: Tensor | None = None
        self._states = [points.new_zeros(rows, count, len(own)) for own in states]
        self._lost = points.new_zeros(rows, count)
        self._g = gamma(terms)

    def add(self, sight: Sight, pieces: Tensor, largest: Tensor) -> None:
        """Add a combination of the pieces that a network sees.

        Parameters
        ----------
        sight : Sight
        pieces : Tensor of shape (rows, count, pieces * in)
            The combinations.
        largest : Tensor of shape (rows, pieces * in)
            The largest value of a piece in the box.
        """
        s, n = sight.values.shape[-2:]
        own = pieces.reshape(*pieces.shape[:2], s, n).permute(
            0, 3, 1, 2
        )  # (rows, in, count, pieces)
        values = own @ sight.values.permute(0, 3, 2, 1)
        self._values = self._values.index_add(1, sight.inputs, values)
        size = pieces.detach().abs()
        if sight.strays is not None:
            if self._strays is None:
                self._strays = torch.zeros_like(self._values[..., 1:])
            strays = own.abs() @ sight.strays.permute(0, 3, 2, 1)
            self._strays = self._strays.index_add(1, sight.inputs, strays)
        for number, states in enumerate(sight.states):
            self._states[number] = self._states[number] + pieces @ states.mT
        off = self._g * largest + 2 * sight.off + LOST
        self._lost = self._lost + (size @ off.unsqueeze(-1)).squeeze(-1) + LOST

    def least(self) -> Tensor:
        """Return no more than the least value in the box, of shape (rows, count)."""
        lower = torch.minimum(self._values[..., 1:], self._values[..., :-1])
        if self._strays is not None:
            lower = lower - self._strays * (1 + self._g)
        total = lower.amin(dim=-1).sum(dim=1)
        for values in self._states:
            total = total + values.amin(dim=-1)
        return total - self._lost * (1 + self._g)

    def spreads(self) -> tuple[Tensor, list[Tensor]]:
        """Return about how far the first sum of each row goes up and down in the box.

        Along each column, of shape (rows, columns), and for each category, of shape (rows,).
        """
        own = self._values[:, :, 0]
        ends = [(values[:, 0].amax(dim=-1), values[:, 0].amin(dim=-1)) for values in self._states]
        return own.amax(dim=-1) - own.amin(dim=-1), [high - low for high, low in ends]
