"""Linear bounds: every neuron between two lines, pushed back through all layers to the columns.

A combination of outputs is a combination of the pieces that the last layer reads. For each of its
coordinates that is a function with one kink, above a line on the interval where the coordinate can
be; the lines are a combination of the outputs of the layer below, and so on to the columns. There
the functions of all networks are added before the least value in the box is taken. The proof that
no rounding is lost is in docs/theory.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from psilonnet.certify.column_sums import ColumnSums, InputBox, Sight, finer, kinks_of
from psilonnet.certify.forward_error import forward_error
from psilonnet.certify.lines import largest_gaps, lines_below
from psilonnet.certify.ranges import Range, layer_range
from psilonnet.certify.rounding import LOST, gamma
from psilonnet.nn import AveragedNet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.certify.box import Box
    from psilonnet.certify.combinations import Combinations
    from psilonnet.nn import ColumnMap, Part, PlainNet


def linear_falls(net: AveragedNet, x: Tensor, box: Box, asked: Combinations) -> Tensor:
    """Return how far combinations of averaged outputs can fall, of shape (rows, count)."""
    return LinearBound(net, x, InputBox.of(x, box)).falls(asked)


class Form(NamedTuple):
    """No more than some combinations of outputs: pieces that a layer reads, and a number.

    Attributes
    ----------
    pieces : Tensor of shape (rows, count, pieces * in)
    constant : Tensor of shape (rows, count)
    lost : Tensor of shape (rows, count)
        What rounding may have added to the rest, anywhere in the box.
    """

    pieces: Tensor
    constant: Tensor
    lost: Tensor


@dataclass
class Slack:
    """Where a linear bound on one combination of each row may be loose.

    Attributes
    ----------
    neurons : list of lists of Tensor of shape (rows, 1, neurons)
        For each network, and each layer from the last one down to the second: how far lines are
        from what they stand for.
    columns : Tensor of shape (rows, columns)
        How far the function of a column goes up and down in the box.
    states : list of Tensor of shape (rows,)
        How far that of a category does.
    """

    neurons: list[list[Tensor]] = field(default_factory=list)
    columns: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    states: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Chain:
    """One network of an average, and where the inputs of its layers are in the box of each row.

    Attributes
    ----------
    net : PlainNet
        Of one member.
    ranges : tuple of Range
    terms : int
        No fewer than the products of any sum.
    empty : Tensor of bool of shape (rows,)
        Where no input of the box has the given signs.
    """

    net: PlainNet
    ranges: tuple[Range, ...]
    terms: int
    empty: Tensor

    @classmethod
    def of(
        cls, net: PlainNet, box: InputBox, terms: int, signs: Sequence[Tensor] | None = None
    ) -> Chain:
        """Return ranges, the intervals of each layer tightened by linear bounds on its inputs.

        Parameters
        ----------
        net : PlainNet of one member
        box : InputBox
        terms : int
        signs : sequence of Tensor of shape (rows, in), optional
            Of the inputs of each layer but the first: 1 or -1 where only inputs of the box count
            for which it is at least, or at most, 0; and 0 elsewhere.
        """
        first = net.layers[0]
        ranges = [layer_range(first, box.low, box.high, box.states)]
        empty = torch.zeros(len(box.low), dtype=torch.bool)
        sight: Sight | None = None
        for k, layer in enumerate(net.layers[1:], start=1):
            low, high = ranges[-1].outputs
            if k > 1 and layer.split in ("relu", "crelu"):
                if sight is None:
                    points = box.cut(kinks_of(first))
                    inputs = torch.arange(box.low.shape[1])
                    sight = Sight.of(first, inputs, points, box.states)
                below = cls(net, tuple(ranges), terms, empty)
                low, high = below._tightened(k, low, high, sight, box)
            if signs is not None:
                low = torch.where(signs[k - 1] > 0, low.clamp(min=0.0), low)
                high = torch.where(signs[k - 1] < 0, high.clamp(max=0.0), high)
                empty = empty | (low > high).any(dim=-1)
            ranges.append(layer_range(layer, low, high))
        return cls(net, tuple(ranges), terms, empty)

    def _tightened(
        self, k: int, low: Tensor, high: Tensor, sight: Sight, box: InputBox
    ) -> tuple[Tensor, Tensor]:
        """Return the better of intervals and linear bounds on the inputs of layer k."""
        open_ = (low < 0) & (high > 0)
        count = int(open_.sum(dim=1).max()) if open_.numel() else 0
        if not count:
            return low, high
        places = open_.byte().argsort(dim=1, descending=True)[:, :count]
        below = self.net.layers[k - 1]
        rows = below.weight[0].flatten(-2)[places]  # (rows, count, pieces * in)
        bias = below.bias[0][places]
        zero = torch.zeros_like(bias)
        form = Form(
            torch.cat((rows, -rows), dim=1),
            torch.cat((bias, -bias), dim=1),
            torch.cat((zero, zero), dim=1),
        )
        form = self.pulled(form, k - 1)
        sums = ColumnSums(sight.points, box.states, 2 * count, self.terms)
        sums.add(sight, form.pieces, self.ranges[0].largest.flatten(-2))
        found = _least(form, sums, self.terms)
        lower, upper = found[:, :count], -found[:, count:]
        low = low.scatter(1, places, torch.maximum(low.gather(1, places), lower))
        return low, high.scatter(1, places, torch.minimum(high.gather(1, places), upper))

    def form(
        self, combinations: Tensor, gaps: list[Tensor] | None = None, *, even: bool = False
    ) -> Form:
        """Return combinations of outputs, of shape (rows, count, out), as pieces of the inputs."""
        zero = combinations.new_zeros(combinations.shape[:2])
        top = len(self.net.layers) - 1
        return self.pulled(self._through(Form(combinations, zero, zero), top), top, gaps, even=even)

    def pulled(
        self, form: Form, level: int, gaps: list[Tensor] | None = None, *, even: bool = False
    ) -> Form:
        """Return pieces that a layer reads as pieces that the first layer reads.

        To ``gaps`` is added for each layer on the way how far its lines are from their functions.
        """
        for k in range(level, 0, -1):
            lines = lines_below(self.net.layers[k], form.pieces, self.ranges[k], even=even)
            if gaps is not None:
                gaps.append(largest_gaps(self.net.layers[k], form.pieces, self.ranges[k]))
            lost = form.lost + lines.lost
            form = self._through(Form(lines.slope, form.constant + lines.offset, lost), k - 1)
        return form

    def _through(self, form: Form, k: int) -> Form:
        """Return a combination of the outputs of a layer as one of the pieces that it reads."""
        layer, size = self.net.layers[k], self.ranges[k].size
        weight, bias = layer.weight[0].flatten(-2), layer.bias[0]
        terms = (form.pieces.detach().abs() @ (size + LOST).unsqueeze(-1)).squeeze(-1)
        lost = form.lost + 2 * gamma(self.terms) * terms + self.ranges[k].underflow
        return Form(form.pieces @ weight, form.constant + form.pieces @ bias, lost)


def _least(form: Form, sums: ColumnSums, terms: int) -> Tensor:
    """Return no more than the least value of forms whose pieces were summed up."""
    lower = sums.least()
    total = form.constant + lower
    slack = 2 * form.lost + gamma(terms) * (form.constant.abs() + lower.abs())
    total = total - slack.detach() - LOST
    return torch.where(total.isfinite(), total, -torch.inf)


class LinearBound:
    """Linear bounds on combinations of the outputs of an average, in boxes around rows.

    Parameters
    ----------
    net : AveragedNet
    x : Tensor of shape (rows, columns)
        What falls are measured from; it need not lie in the box.
    whole : InputBox
    signs : sequence of sequences of Tensor, optional
        For each network what :meth:`Chain.of` takes.
    """

    def __init__(
        self,
        net: AveragedNet,
        x: Tensor,
        whole: InputBox,
        signs: Sequence[Sequence[Tensor]] | None = None,
    ) -> None:
        self.net, self.x = net, x
        self.terms = _terms(net)
        shared = _shared_map(net)
        if shared is not None:
            whole = whole.seen(shared)
        kinks = [_kinks(part, net.columns, shared is None) for part in net.parts]
        self.states = whole.states
        points = whole.cut(torch.cat(kinks))
        self.points = points if shared is not None else finer(points)
        self._readers: list[tuple[Chain, Sight, float]] = []
        for part in net.parts:
            columns = part.columns if shared is None else None
            own = whole.at(part.inputs)
            own = own if columns is None else own.seen(columns)
            for member, weight in enumerate(part.weight.tolist()):
                single = part.net.member(member)
                sight = Sight.of(single.layers[0], part.inputs, self.points, self.states, columns)
                fixed = None if signs is None else signs[len(self._readers)]
                self._readers.append((Chain.of(single, own, self.terms, fixed), sight, weight))

    def lower(self, combinations: Tensor, slack: Slack | None = None) -> Tensor:
        """Return no more than the least value of combinations, of shape (rows, count, out).

        The better of two choices of lines, each for all networks. The slack of the first is told.
        """
        return torch.maximum(self._lower(combinations, slack), self._lower(combinations, even=True))

    def _lower(
        self, combinations: Tensor, slack: Slack | None = None, *, even: bool = False
    ) -> Tensor:
        rows, count = combinations.shape[:2]
        sums = ColumnSums(self.points, self.states, count, self.terms)
        zero = combinations.new_zeros(rows, count)
        constant, lost = zero, zero
        for chain, sight, weight in self._readers:
            own: list[Tensor] | None = None if slack is None else []
            form = chain.form(weight * combinations, own, even=even)
            if slack is not None and own is not None:
                slack.neurons.append(own)
            sums.add(sight, form.pieces, chain.ranges[0].largest.flatten(-2))
            # Each addition is rounded.
            size = form.constant.abs() + constant.abs()
            lost = lost + form.lost + gamma(2) * size.detach()
            constant = constant + form.constant
        if slack is not None:
            slack.columns, slack.states = sums.spreads()
        return _least(Form(zero, constant, lost), sums, self.terms)

    @property
    def empty(self) -> Tensor:
        """Where no input of the box has the given signs, of shape (rows,)."""
        return torch.stack([chain.empty for chain, _, _ in self._readers]).any(dim=0)

    def falls(self, asked: Combinations, slack: Slack | None = None) -> Tensor:
        """Return how far combinations can fall below their exact value at the row."""
        combinations = asked.expanded
        lower = self.lower(combinations, slack)
        outputs = self.net(self.x)
        value = torch.einsum("rco,ro->rc", combinations, outputs)
        size = torch.einsum("rco,ro->rc", combinations.abs(), outputs.abs())
        here = torch.zeros(len(outputs), dtype=torch.float64)
        error = forward_error(self.net, self.x, here).unsqueeze(-1)
        error = error * combinations.abs().sum(dim=-1)
        off = 2 * error + gamma(self.terms) * (size + lower.abs()) + LOST
        fall = value - lower + off
        return torch.where(fall.isfinite(), fall, torch.inf)


def _terms(net: AveragedNet) -> int:
    """Return no fewer than the products and sums that lead to any number of a linear bound."""
    layers = [layer for part in net.parts for layer in part.net.layers]
    widest = max(max(layer.weight[0, 0].numel(), layer.weight.shape[1]) for layer in layers)
    deepest = max(len(part.net.layers) for part in net.parts)
    return widest + net.columns + 8 * (deepest + net.terms + 4)


def _shared_map(net: AveragedNet) -> ColumnMap | None:
    """Return the map of all columns, if those parts that read a column see it alike."""
    first = net.parts[0].columns
    bent = torch.zeros(net.columns, dtype=torch.bool)
    center = torch.zeros(net.columns, dtype=torch.float64)
    scale, known = torch.ones_like(center), torch.zeros_like(bent)
    for part in net.parts:
        own, inputs = part.columns, part.inputs
        seen = torch.where(known[inputs], bent[inputs], own.bent)
        same = (
            (own.bend == first.bend)
            & torch.equal(seen, own.bent)
            & torch.equal(torch.where(known[inputs], center[inputs], own.center), own.center)
            & torch.equal(torch.where(known[inputs], scale[inputs], own.scale), own.scale)
        )
        if not same:
            return None
        bent[inputs], center[inputs], scale[inputs] = own.bent, own.center, own.scale
        known[inputs] = True
    return type(first).of(first.bend, bent, center, scale)


def _kinks(part: Part, columns: int, mapped: bool) -> Tensor:
    """Return where the networks of a part have kinks, of shape (kinks, columns); NaN for none."""
    own = kinks_of(part.net.layers[0])
    own = part.columns.inverse(own) if mapped else own
    kinks = own.new_full((len(own), columns), torch.nan)
    kinks[:, part.inputs] = own
    return kinks
