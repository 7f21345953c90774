"""Proofs about rows: how far outputs move, within which radius a class stays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.certify.box import Box
from psilonnet.certify.combinations import class_margins, each_output
from psilonnet.certify.forward_error import forward_error
from psilonnet.certify.global_bound import global_moves
from psilonnet.certify.methods import get_method
from psilonnet.certify.monotone import averaged
from psilonnet.certify.perturbation import Perturbation, reading_errors
from psilonnet.certify.rounding import UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from psilonnet.certify.combinations import Combinations
    from psilonnet.certify.methods import Method
    from psilonnet.nn import AveragedNet, PlainNet
    from psilonnet.tables import TableEncoder

Array = np.ndarray[Any, Any]
FARTHEST = 1e12  # standard deviations; a model that depends on nothing is certified this far
DOUBLINGS, HALVINGS = 8, 8  # of the search for a radius, which is found to 0.4 %
PART = 2**24  # numbers that are in memory for the rows certified at a time


class Certifier:
    """Proofs about a network, and about the table in front of it if there is one.

    Parameters
    ----------
    net : AveragedNet, PlainNet, Network, nn.Sequential of Linear and ReLU layers, or MonotoneNet
        Members of a population are averaged.
    encoder : TableEncoder, optional
        If it is given, rows are columns of a table, and moves are in their units. Else rows are
        tensors of shape (rows, in), and one standard deviation of an input is 1.

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> certifier = Certifier(PSiLONNet(4, 3, width=8, depth=2))
    >>> x = torch.zeros(5, 4)
    >>> certifier.certified_radius(x, method="local").shape, certifier.is_robust(x, 0.1).dtype
    ((5,), dtype('bool'))
    """

    def __init__(
        self, net: nn.Module | PlainNet | AveragedNet, encoder: TableEncoder | None = None
    ) -> None:
        self.net = averaged(net)
        self.encoder = encoder
        if encoder is not None:
            _check_maps(self.net, encoder)

    def certified_radius(self, rows: Any, *, method: str = "global") -> Array:
        """Return how far all numbers of a row may move together while its class stays.

        Parameters
        ----------
        rows : sequence of Column, or Tensor of shape (rows, in)
        method : {"global", "local"}

        Returns
        -------
        ndarray of shape (rows,)
            In standard deviations of the columns, as the encoder scales them.
        """
        parts = [part.certified_radius() for part in self._parts(rows, None, method)]
        return np.concatenate(parts)

    def is_robust(self, rows: Any, delta: Any, *, method: str = "global") -> Array:
        """Return True for the rows whose class provably stays under every move within delta."""
        parts = [part.is_robust() for part in self._parts(rows, delta, method)]
        return np.concatenate(parts)

    def output_range(self, rows: Any, delta: Any, *, method: str = "global") -> tuple[Array, Array]:
        """Return ranges that hold the outputs under every move within delta, low and high."""
        middle, moved = self.largest_moves(rows, delta, method=method)
        half = moved * (1 + 1e-12) + 1e-15 * np.abs(middle)  # the last sums are rounded, too
        return middle - half, middle + half

    def largest_moves(
        self, rows: Any, delta: Any, *, method: str = "global"
    ) -> tuple[Array, Array]:
        """Return the outputs, and how far each can move, both of shape (rows, outputs)."""
        parts = [part.output_moves() for part in self._parts(rows, delta, method)]
        outputs, moved = (np.concatenate(side) for side in zip(*parts, strict=True))
        return outputs, moved

    def largest_margins(self, rows: Any, delta: Any, *, method: str = "global") -> Iterator[Array]:
        """Yield, for parts of the rows, the largest margin of every class over each other one.

        Each is of shape (rows, classes, classes - 1): how far the logit of a class can lie above
        that of another under some move within delta. Two classes of one logit count as two.
        """
        for part in self._parts(rows, delta, method):
            yield part.largest_margins()

    def _parts(self, rows: Any, delta: Any, method: str) -> Iterator[_Proof]:
        """Yield proofs about parts of the rows that fit into memory."""
        proof_method = get_method(method)
        x, whole, reading_error = self._encoded(rows, 1.0 if delta is None else delta)
        size = max(1, PART // proof_method.memory(self.net))
        for first in range(0, len(x), size):
            own = slice(first, first + size)
            yield _Proof(self.net, x[own], whole.at(own), proof_method, reading_error)

    def _encoded(self, rows: Any, delta: Any) -> tuple[Tensor, Box, float]:
        """Return encoded rows, the box around each, and how far reading a cell can move it."""
        given = Perturbation.of(delta)
        if self.encoder is None:
            x = torch.as_tensor(rows, dtype=torch.float64)
            return x, given.plain_box(x), 0.0
        encoded = self.encoder.encode(rows)
        reading_error = reading_errors(self.encoder).max(initial=0.0)
        return (
            torch.from_numpy(encoded),
            given.box(self.encoder, rows, encoded),
            float(reading_error),
        )


@dataclass(frozen=True)
class _Proof:
    """What is proven about some encoded rows by one method.

    Attributes
    ----------
    net : AveragedNet
    x : Tensor of shape (rows, in)
    box : Box
        What may move; for a radius, whatever may move at all.
    method : Method
    reading_error : float
        How far reading a cell can move an encoded number.
    """

    net: AveragedNet
    x: Tensor
    box: Box
    method: Method
    reading_error: float

    @cached_property
    def outputs(self) -> Tensor:
        """The averaged outputs, of shape (rows, outputs)."""
        return self.net(self.x)

    def output_moves(self) -> tuple[Array, Array]:
        """Return the outputs, and how far each can move."""
        asked = each_output(*self.outputs.shape)
        return self.outputs.numpy(), self.largest_moves(self.box, asked).numpy()

    def largest_margins(self) -> Array:
        """Return the largest margin of every class over each other one."""
        found = []
        for k in range(max(2, self.outputs.shape[1])):
            margins, asked = class_margins(self.outputs, torch.full((len(self.x),), k))
            found.append(margins + self.largest_moves(self.box, asked))
        return torch.stack(found, dim=1).numpy()

    def is_robust(self) -> Array:
        """Return True where no margin can be used up."""
        margins, asked = class_margins(self.outputs)
        return np.asarray((self.largest_moves(self.box, asked) < margins).all(dim=-1))

    def certified_radius(self) -> Array:
        """Return how many standard deviations all numbers can move without using a margin up."""
        margins, asked = class_margins(self.outputs)
        unit = self.unit
        per_unit = global_moves(self.net, self.x, Box(unit), asked)
        rough = _least_quotient(margins, per_unit)
        slack = self.slack(unit * rough.unsqueeze(-1), asked)
        radius = _least_quotient(margins - slack, per_unit) * (1 - 1e-12)
        if self.method.moves is not global_moves:
            radius = self._searched(radius, margins, asked).clamp(max=FARTHEST)
        # What the rounding of the encoding takes away.
        size = self.x.abs().amax(dim=-1) + 1
        safe = (radius - 16 * UNIT * (size + radius) - self.reading_error).clamp(min=0.0)
        found: Array = safe.numpy()
        return found

    @property
    def unit(self) -> Tensor:
        """One standard deviation for every number that may move, and zero for all else."""
        return (self.box.radius > 0).double()

    def slack(self, radius: Tensor, asked: Combinations) -> Tensor:
        """Return the rounding of two predictions, of shape (rows, count)."""
        error = forward_error(self.net, self.x, radius.amax(dim=-1))
        return 2 * error.unsqueeze(-1) * asked.table.abs().sum(dim=-1)[asked.index]

    def largest_moves(self, box: Box, asked: Combinations) -> Tensor:
        """Return how far computed combinations of outputs can move, of shape (rows, count)."""
        largest = global_moves(self.net, self.x, box, asked)
        if self.method.moves is not global_moves:
            largest = torch.minimum(largest, self.method.moves(self.net, self.x, box, asked))
        return largest + self.slack(box.hull, asked)

    def _searched(self, radius: Tensor, margins: Tensor, asked: Combinations) -> Tensor:
        """Return the largest radius found by doubling and halving; never below the global one."""
        unit = self.unit

        def holds(trial: Tensor) -> Tensor:
            box = Box(unit * trial.unsqueeze(-1))
            moved = self.method.moves(self.net, self.x, box, asked)
            return (moved + self.slack(box.radius, asked) < margins).all(dim=-1)

        low, high = radius, radius * 2
        growing = radius > 0
        for _ in range(DOUBLINGS):
            growing = growing & holds(high)
            if not growing.any():
                break
            low = torch.where(growing, high, low)
            high = torch.where(growing, high * 2, high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            good = holds(middle)
            low, high = torch.where(good, middle, low), torch.where(good, high, middle)
        return torch.maximum(low, radius)


def _check_maps(net: AveragedNet, encoder: TableEncoder) -> None:
    """Refuse maps of columns that jump: proofs take their states as they are."""
    numbers = torch.from_numpy(encoder.holds_numbers)
    if net.columns != len(numbers) or any(
        bool((part.columns.bent & ~numbers[part.inputs]).any()) for part in net.parts
    ):
        raise ValueError(
            f"The networks must read {len(numbers)} encoded columns, and their maps bend columns "
            f"of numbers only. Got {net.columns} columns, or a map of a category or of a mark for "
            "what is missing."
        )


def _least_quotient(margins: Tensor, per_unit: Tensor) -> Tensor:
    """Return the least quotient of each row; it is undefined, and 0, where nothing is left."""
    quotient = (margins / per_unit).nan_to_num(nan=0.0, posinf=FARTHEST)
    return quotient.amin(dim=-1).clamp(min=0.0, max=FARTHEST)
