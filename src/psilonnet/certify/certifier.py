"""Proofs about rows: how far outputs move, within which radius a class stays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from psilonnet.certify.box import Box
from psilonnet.certify.branching import falls_less_by_cases
from psilonnet.certify.combinations import both_ways, class_margins
from psilonnet.certify.forward_error import forward_error
from psilonnet.certify.global_bound import global_moves
from psilonnet.certify.methods import LOCAL, get_methods
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
TRIALS = 6  # of a search from a radius that holds
GRID = 4096  # ratios that it tries between a radius and twice that radius
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
        parts = [part.certified_radius() for part in self._parts(rows, None, method)]
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
            prove. "auto" is all of them.

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
            proof = _Proof(self.net, x[own], whole.at(own), (), reading_error)
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

    def _parts(self, rows: Any, delta: Any, method: str) -> Iterator[_Proof]:
        """Yield proofs about parts of the rows that fit into memory."""
        methods = get_methods(method)
        x, whole, reading_error = self._encoded(rows, 1.0 if delta is None else delta)
        size = max(1, PART // max(own.memory(self.net) for own in methods))
        quiet = not self.progress
        with tqdm(total=len(x), unit="row", leave=False, delay=SHOWN, disable=quiet) as bar:
            for first in range(0, len(x), size):
                own = slice(first, first + size)
                yield _Proof(self.net, x[own], whole.at(own), methods, reading_error)
                bar.update(len(x[own]))

    def _encoded(self, rows: Any, delta: Any) -> tuple[Tensor, Box, float]:
        """Return encoded rows, the box around each, and how far reading a cell can move it."""
        given = Perturbation.of(delta)
        if len(rows) == 0 or (self.encoder is not None and len(rows[0].values) == 0):
            raise ValueError("There must be at least one row to prove something about. Got none.")
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
    """What is proven about some encoded rows.

    Attributes
    ----------
    net : AveragedNet
    x : Tensor of shape (rows, in)
    box : Box
        What may move; for a radius, whatever may move at all.
    methods : tuple of Method
        The cheapest first.
    reading_error : float
        How far reading a cell can move an encoded number.
    """

    net: AveragedNet
    x: Tensor
    box: Box
    methods: tuple[Method, ...]
    reading_error: float

    @cached_property
    def outputs(self) -> Tensor:
        """The averaged outputs, of shape (rows, outputs)."""
        return self.net(self.x)

    def output_moves(self) -> tuple[Array, Array, Array]:
        """Return the outputs, and how far each can move down and up."""
        rows, n = self.outputs.shape
        falls = self.falls(both_ways(rows, n)).numpy()
        return self.outputs.numpy(), falls[:, :n], falls[:, n:]

    def largest_margins(self) -> Array:
        """Return the largest margin of every class over each other one."""
        found = []
        for k in range(max(2, self.outputs.shape[1])):
            margins, asked = class_margins(self.outputs, torch.full((len(self.x),), k))
            found.append(margins + self.falls(asked.opposite))
        return torch.stack(found, dim=1).numpy()

    def is_robust(self) -> Array:
        """Return True where no margin can be used up."""
        margins, asked = class_margins(self.outputs)
        return np.asarray((self.falls(asked, margins) < margins).all(dim=-1))

    def holds_by_cases(self, enough: Tensor | None, budget: int) -> bool:
        """Return whether no output of any row moves by enough; without it, whether classes stay."""
        if enough is None:
            enough, asked = class_margins(self.outputs)
        else:
            asked = both_ways(*self.outputs.shape)
        exact = enough - self.slack(self.box.hull, asked)
        held = falls_less_by_cases(self.net, self.x, self.box, asked, exact, budget)
        return bool(held.all())

    def certified_radius(self) -> Array:
        """Return how many standard deviations all numbers can move without using a margin up."""
        margins, asked = class_margins(self.outputs)
        unit = self.unit
        per_unit = global_moves(self.net, self.x, Box(unit), asked)
        rough = _least_quotient(margins, per_unit)
        slack = self.slack(unit * rough.unsqueeze(-1), asked)
        radius = _least_quotient(margins - slack, per_unit) * (1 - 1e-12)
        for method in self.methods[1:]:
            search = self._doubled if method is LOCAL else self._bracketed
            radius = search(method, radius, margins, asked).clamp(max=FARTHEST)
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

    def falls(self, asked: Combinations, enough: Tensor | None = None) -> Tensor:
        """Return how far computed combinations of outputs can fall, of shape (rows, count).

        Parameters
        ----------
        asked : Combinations
        enough : Tensor of shape (rows, count), optional
            A row whose falls are all proven to be smaller is not looked at again.
        """
        slack = self.slack(self.box.hull, asked)
        found = torch.full_like(slack, torch.inf)
        left = torch.arange(len(slack))
        for method in self.methods:
            fall = method.falls(self.net, self.x[left], self.box.at(left), asked.at(left))
            found[left] = torch.minimum(found[left], fall + slack[left])
            if enough is not None:
                left = (found >= enough).any(dim=-1).nonzero().squeeze(1)
            if not len(left):
                break
        return found

    def _falls_within(self, method: Method, radius: Tensor, asked: Combinations) -> Tensor:
        """Return how far computed combinations can fall within one radius for each row."""
        box = Box(self.unit * radius.unsqueeze(-1))
        return method.falls(self.net, self.x, box, asked) + self.slack(box.radius, asked)

    def _doubled(
        self, method: Method, radius: Tensor, margins: Tensor, asked: Combinations
    ) -> Tensor:
        """Return the largest radius found by doubling and halving; never below the given one."""

        def holds(trial: Tensor) -> Tensor:
            return (self._falls_within(method, trial, asked) < margins).all(dim=-1)

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

    def _bracketed(
        self, method: Method, radius: Tensor, margins: Tensor, asked: Combinations
    ) -> Tensor:
        """Return a radius found in few trials from a given one, and not below it.

        Each trial is where the margin would be used up if falls grew as they did so far: they grow
        faster, so it is first too far and then lies between what holds and what does not. Trials
        are taken from a fixed grid of ratios to the given radius, the next one above: a place
        between two would carry on what is rounded in the falls, and the radius depend on which
        rows are proven together.
        """
        low, high = torch.zeros_like(radius), torch.full_like(radius, torch.inf)  # on the grid
        used_low = self._used(method, radius, margins, asked).clamp(max=1.0)
        used_high = high
        for _ in range(TRIALS):
            looking = high - low > 1
            if not looking.any():
                break
            here, far = _grid_ratio(low), _grid_ratio(high)
            share = ((1 - used_low) / (used_high - used_low)).nan_to_num(0.5).clamp(0.05, 0.95)
            first = 1.02 * here / used_low.clamp(min=1 / 16)
            goal = torch.where(high.isfinite(), here + share * (far - here), first)
            trial = torch.maximum(torch.minimum(_grid_place(goal), high - 1), low + 1)
            used = self._used(method, radius * _grid_ratio(trial), margins, asked)
            good, bad = looking & (used < 1), looking & (used >= 1)
            low, high = torch.where(good, trial, low), torch.where(bad, trial, high)
            used_low = torch.where(good, used, used_low)
            used_high = torch.where(bad, used.clamp(max=1e3), used_high)
        return radius * _grid_ratio(low)

    def _used(self, method: Method, radius: Tensor, margins: Tensor, asked: Combinations) -> Tensor:
        """Return the largest share of a margin that is used up within a radius."""
        falls = self._falls_within(method, radius, asked)
        used = torch.where(falls < margins, falls / margins, (falls / margins).clamp(min=1.0))
        return used.nan_to_num(torch.inf).amax(dim=-1)


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


def _grid_ratio(place: Tensor) -> Tensor:
    """Return the ratio at a place of the grid; that of place 0 is 1."""
    return torch.exp2(place / GRID)


def _grid_place(ratio: Tensor) -> Tensor:
    """Return the first place of the grid with no less than a ratio."""
    return (GRID * ratio.log2()).ceil()


def _least_quotient(margins: Tensor, per_unit: Tensor) -> Tensor:
    """Return the least quotient of each row; it is undefined, and 0, where nothing is left."""
    quotient = (margins / per_unit).nan_to_num(nan=0.0, posinf=FARTHEST)
    return quotient.amin(dim=-1).clamp(min=0.0, max=FARTHEST)
