"""Proofs about rows: how far outputs move, within which radius a class stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from psilonnet.certify.methods import get_methods
from psilonnet.certify.monotone import averaged
from psilonnet.certify.perturbation import Perturbation, reading_errors
from psilonnet.certify.proof import Proof
from psilonnet.certify.radius import certified_radius

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from psilonnet.certify.box import Box
    from psilonnet.nn import AveragedNet, PlainNet
    from psilonnet.tables import TableEncoder

Array = np.ndarray[Any, Any]
SHOWN = 2  # seconds after which a bar is shown
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
    progress : bool, default=True
        Show a bar if a proof takes more than two seconds.

    Examples
    --------
    >>> from psilonnet.nn import PSiLONNet
    >>> certifier = Certifier(PSiLONNet(4, 3, width=8, depth=2))
    >>> x = torch.zeros(5, 4)
    >>> certifier.certified_radius(x, method="local").shape, certifier.is_robust(x, 0.1).dtype
    ((5,), dtype('bool'))
    """

    def __init__(
        self,
        net: nn.Module | PlainNet | AveragedNet,
        encoder: TableEncoder | None = None,
        *,
        progress: bool = True,
    ) -> None:
        self.net = averaged(net)
        self.encoder, self.progress = encoder, progress
        if encoder is not None:
            _check_maps(self.net, encoder)

    def certified_radius(self, rows: Any, *, method: str = "local") -> Array:
        """Return how far all numbers of a row may move together while its class stays.

        Parameters
        ----------
        rows : sequence of Column, or Tensor of shape (rows, in)
        method : {"local", "global", "linear"}
            The methods of :meth:`is_robust`.

        Returns
        -------
        ndarray of shape (rows,)
            In standard deviations of the columns, as the encoder scales them.
        """
        parts = [certified_radius(part) for part in self._parts(rows, 1.0, method)]
        return np.concatenate(parts)

    def is_robust(self, rows: Any, delta: Any, *, method: str = "auto") -> Array:
        """Return True for the rows whose class provably stays under every move within delta.

        Parameters
        ----------
        rows : sequence of Column, or Tensor of shape (rows, in)
        delta : what :meth:`Perturbation.of` takes
        method : {"auto", "global", "local", "linear"}
            "global" holds everywhere and costs next to nothing. "local" looks at the neighbourhood
            of each row. "linear" also follows every neuron there; it is the tightest and the
            slowest. Each begins with the cheaper ones and looks only at the rows that they did not
            prove. "auto" is the tightest, today "linear".

        Returns
        -------
        ndarray of bool of shape (rows,)
        """
        parts = [part.is_robust() for part in self._parts(rows, delta, method)]
        return np.concatenate(parts)

    def is_robust_by_cases(self, rows: Any, delta: Any, asked: Array, *, budget: int) -> Array:
        """Return True for those of the asked rows whose class provably stays, by cases.

        Parameters
        ----------
        rows, delta
            As for :meth:`is_robust`.
        asked : ndarray of bool of shape (rows,)
        budget : int
            How many cases are looked at for each other class of a row.
        """
        return self._by_cases(rows, delta, asked, None, budget)

    def moves_less(self, rows: Any, delta: Any, enough: Array, *, method: str = "auto") -> Array:
        """Return True for the rows whose outputs provably move by less than enough.

        Parameters
        ----------
        rows, delta, method
            As for :meth:`is_robust`.
        enough : ndarray of shape (rows, 2 * outputs)
            How far each output may move down, and then up.

        Returns
        -------
        ndarray of bool of shape (rows,)
        """
        found: list[Array] = []
        first = 0
        for part in self._parts(rows, delta, method):
            last = first + len(part.x)
            found.append(part.moves_less(torch.as_tensor(enough[first:last])))
            first = last
        return np.concatenate(found)

    def moves_less_by_cases(
        self, rows: Any, delta: Any, asked: Array, enough: Array, *, budget: int
    ) -> Array:
        """Return True for those of the asked rows whose outputs provably move by less, by cases.

        Parameters
        ----------
        rows, delta, asked
            As for :meth:`is_robust_by_cases`.
        enough : ndarray of shape (rows, 2 * outputs)
            How far each output may move down, and then up.
        budget : int
            How many cases are looked at for each output and side.
        """
        return self._by_cases(rows, delta, asked, torch.as_tensor(enough), budget)

    def _by_cases(
        self, rows: Any, delta: Any, asked: Array, enough: Tensor | None, budget: int
    ) -> Array:
        """Return True for those rows that are proven; without ``enough`` about their class."""
        x, whole, reading_error = self._encoded(rows, delta)
        found = np.zeros(len(x), dtype=bool)
        quiet = not self.progress
        places = np.flatnonzero(asked).tolist()
        for row in tqdm(places, unit="row", leave=False, delay=SHOWN, disable=quiet):
            own = slice(row, row + 1)
            proof = Proof(self.net, x[own], whole.at(own), (), reading_error)
            found[row] = proof.holds_by_cases(None if enough is None else enough[own], budget)
        return found

    def output_range(self, rows: Any, delta: Any, *, method: str = "auto") -> tuple[Array, Array]:
        """Return the low and the high ends of ranges that hold the outputs within delta."""
        middle, down, up = self.output_moves(rows, delta, method=method)
        spare = 1e-15 * np.abs(middle)  # the last sums are rounded, too
        low = middle - (down * (1 + 1e-12) + spare)
        return low, middle + (up * (1 + 1e-12) + spare)

    def output_moves(
        self, rows: Any, delta: Any, *, method: str = "auto"
    ) -> tuple[Array, Array, Array]:
        """Return the outputs and how far each can move down and up, of shape (rows, outputs)."""
        parts = [part.output_moves() for part in self._parts(rows, delta, method)]
        outputs, down, up = (np.concatenate(side) for side in zip(*parts, strict=True))
        return outputs, down, up

    def largest_margins(self, rows: Any, delta: Any, *, method: str = "auto") -> Iterator[Array]:
        """Yield, for parts of the rows, the largest margin of every class over each other one.

        Each is of shape (rows, classes, classes - 1): how far the logit of a class can lie above
        that of another under some move within delta. Two classes of one logit count as two.
        """
        for part in self._parts(rows, delta, method):
            yield part.largest_margins()

    def _parts(self, rows: Any, delta: Any, method: str) -> Iterator[Proof]:
        """Yield proofs about parts of the rows that fit into memory."""
        methods = get_methods(method)
        x, whole, reading_error = self._encoded(rows, delta)
        size = max(1, PART // max(own.memory(self.net) for own in methods))
        quiet = not self.progress
        with tqdm(total=len(x), unit="row", leave=False, delay=SHOWN, disable=quiet) as bar:
            for first in range(0, len(x), size):
                own = slice(first, first + size)
                yield Proof(self.net, x[own], whole.at(own), methods, reading_error)
                bar.update(len(x[own]))

    def _encoded(self, rows: Any, delta: Any) -> tuple[Tensor, Box, float]:
        """Return encoded rows, the box around each, and how far reading a cell can move it."""
        given = Perturbation.of(delta)
        if len(rows) == 0 or (self.encoder is not None and len(rows[0].values) == 0):
            raise ValueError("There must be at least one row to prove something about. Got none.")
        if self.encoder is None:
            x = torch.as_tensor(rows, dtype=torch.float64)
            if x.ndim != 2 or x.shape[1] != self.net.columns:
                raise ValueError(
                    f"Rows must be a matrix with {self.net.columns} columns, one for each input of "
                    f"the network. Got the shape {tuple(x.shape)}."
                )
            if not x.isfinite().all():
                row = int(x.isfinite().all(dim=1).logical_not().nonzero()[0])
                raise ValueError(
                    f"Rows must hold finite numbers. Row {row} does not: leave such rows out, or "
                    "fill their cells."
                )
            return x, given.plain_box(x), 0.0
        encoded = self.encoder.encode(rows)
        reading_error = reading_errors(self.encoder).max(initial=0.0)
        return (
            torch.from_numpy(encoded),
            given.box(self.encoder, rows, encoded),
            float(reading_error),
        )


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
