"""Losses, penalties and gradients of plain ReLU networks, written out: no graph is recorded.

A step of small networks is mostly calls and passes over memory, not products. Here a layer is its
three products and little besides; what is done to single rows of weights is done to all layers of
equally long rows at once; and every large result has its place, which is kept from step to step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from psilonnet.nn import (
    KnotLinear,
    NormalizedLinear,
    PSiLONNet,
    ReLULinear,
    has_closed_form,
    path_norm_penalty,
)
from psilonnet.training.flat import Flat
from psilonnet.training.losses import slope_of
from psilonnet.training.weights import ORDERS, ClosedForm, Shape, Weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from psilonnet.nn import Network
    from psilonnet.training.batches import Batch, Rows
    from psilonnet.training.losses import Loss
    from psilonnet.training.products import Multiply

PART = 2**22  # numbers that go through at a time
TABLE = 2**25  # numbers of a table that is split at its knots once, not batch by batch

_mask_slope = torch.ops.aten.threshold_backward.grad_input


def is_explicit(net: Network, loss: Loss, penalty: Callable[..., Tensor]) -> bool:
    """Whether the gradients of a population under a loss and a penalty are written out here."""
    first, *others = net.layers
    return (
        type(net) is PSiLONNet
        and type(first) in (NormalizedLinear, KnotLinear)
        and all(type(layer) is ReLULinear for layer in others)
        and all(_is_plain(layer) for layer in net.layers)
        and len({(layer.normalization, float(layer.prune_mix)) for layer in net.layers}) == 1
        and (float(first.prune_mix) == 0 or has_closed_form(net))
        and first.direction.device.type == "cpu"
        and slope_of(loss) is not None
        and penalty is path_norm_penalty
    )


def _is_plain(layer: NormalizedLinear) -> bool:
    parameters = (layer.direction, layer.length, layer.bias)
    trained = all(p is not None and p.requires_grad for p in parameters)
    return trained and layer.normalization in ORDERS


class ExplicitGradients:
    """The gradients of a population of plain ReLU networks.

    Parameters
    ----------
    net : PSiLONNet with one member axis
        Its parameters become views into one tensor, until :meth:`release`.
    loss : callable
        One of those whose slope is known.
    reg_strength : Tensor of shape (members,)
    multiply : callable
        How matrices are multiplied.
    part : int, optional
        How many members go through at a time; by default as many as fit into a cache.

    Attributes
    ----------
    flat : Flat
        The parameters and, after each call, their gradients.
    """

    def __init__(
        self,
        net: Network,
        loss: Loss,
        reg_strength: Tensor,
        multiply: Multiply,
        part: int | None = None,
    ) -> None:
        self.net, self.strengths, self.multiply = net, reg_strength, multiply
        slope = slope_of(loss)
        assert slope is not None  # see is_explicit
        self.loss, self.slope = loss, slope
        layers = net.layers
        parameters = [getattr(x, name) for name in ("direction", "length", "bias") for x in layers]
        self.flat = Flat(parameters, outputs_last=parameters[0])
        self.shape = Shape.of(net)
        self.losses, self.penalties = torch.empty_like(reg_strength), torch.empty_like(reg_strength)
        values, slopes = (self.shape.split(lines).lengths for lines in self.flat.both)
        self.closed_form = (
            ClosedForm(self.shape, values, slopes, reg_strength, self.penalties)
            if has_closed_form(net)
            else None
        )
        self._size, self._parts = part, list[_Part]()

    def prepare(self, rows: Rows) -> Rows:
        """Return rows with their inputs split at the knots, if they are not too many then."""
        first = self.net.layers[0]
        shared = isinstance(first, KnotLinear) and first.edges.dim() == 2
        if not shared or rows.x.numel() * first.pieces > TABLE:
            return rows
        return rows.with_inputs(first.split(rows.x))

    @torch.inference_mode()
    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Write the gradient of every parameter; return the loss and the penalty of each member."""
        x = batch.x
        if x.shape[-1] != self.shape.pieces * self.shape.inputs:
            x = self.net.layers[0].split(x)
        mix = float(self.net.layers[0].prune_mix)
        for part in self._parts_for(x.shape[-2]):
            part.weights.prune(mix)
            part.weights.make()
            output = part.forward(part.own(x, 2))
            y = part.own(batch.y, 2)
            value, slope = self.loss(output, y), self.slope(output, y)
            if batch.weight is not None:
                factor = part.own(batch.weight, 1)
                value, slope = value * factor, slope * factor.unsqueeze(-1)
            torch.mean(value, dim=-1, out=part.losses)
            part.backward(slope)
            if self.closed_form is None:
                part.penalties.copy_(part.weights.add_path_norm(part.strengths))
            part.weights.pull_back()
        if self.closed_form is not None:
            self.closed_form.add()
        return self.losses, self.penalties

    def _parts_for(self, rows: int) -> list[_Part]:
        """Return the members in parts of nearly equal size, with places for so many rows."""
        if not self._parts or self._parts[0].rows != rows:
            members, numbers = self.flat.values.shape
            flowing = 2 * rows * sum(self.shape.outputs)
            size = self._size or max(1, PART // (5 * numbers + flowing))
            count = -(-members // size)
            cuts = pairwise(members * k // count for k in range(count + 1))
            self._parts = [_Part(self, slice(*cut), rows) for cut in cuts]
        return self._parts

    def release(self) -> None:
        """Give every parameter memory of its own again."""
        self.flat.release()
        self._parts = []


class _Part:
    """Some members: what flows up through their layers, and the slopes that flow down."""

    def __init__(self, whole: ExplicitGradients, members: slice, rows: int) -> None:
        self.members, self.rows, self.multiply = members, rows, whole.multiply
        self.all = members == slice(0, len(whole.losses))
        self.losses, self.penalties = whole.losses[members], whole.penalties[members]
        self.strengths = whole.strengths[members]
        shape, flat = whole.shape, whole.flat
        values, slopes = (shape.split(lines[members]) for lines in flat.both)
        self.weights = Weights(shape, values, slopes)
        count, place = len(values.first), values.first.new_empty
        self.biases = values.biases.unsqueeze(1).split_with_sizes(shape.outputs, dim=2)
        hidden, hidden_slopes = place(2, count, shape.depth, rows, shape.width).unbind(0)
        last, last_slope = place(2, count, rows, shape.outputs[-1]).unbind(0)
        self.flows = [*hidden.unbind(1), last]
        self.slopes = [*hidden_slopes.unbind(1), last_slope]
        inner = shape.depth * shape.width
        inner_biases = slopes.biases[:, :inner].view(count, shape.depth, shape.width)
        # All slopes in biases of hidden layers are summed in one call.
        self._sums = ((hidden_slopes, inner_biases), (last_slope, slopes.biases[:, inner:]))
        self._x = hidden

    def own(self, rows: Tensor, shared: int) -> Tensor:
        """Return what the members see of rows, which have so many axes if all share them."""
        return rows if self.all or rows.dim() == shared else rows[self.members]

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of a batch, of shape (members, rows, outputs)."""
        self._x = x.expand(len(self.flows[0]), *x.shape[-2:])
        flow = self._x
        for bias, weight, output in zip(self.biases, self.weights.maps, self.flows, strict=True):
            self.multiply(flow, weight, output, bias)
            flow = output if output is self.flows[-1] else output.relu_()
        return flow

    def backward(self, slope: Tensor) -> None:
        """Write the gradients of weights and biases from the slope of the loss in the outputs."""
        torch.div(slope, self.rows, out=self.slopes[-1])
        for k in range(len(self.flows) - 1, 0, -1):
            below, above = self.slopes[k - 1], self.slopes[k]
            self.multiply(above.mT, self.flows[k - 1], self.weights.slopes[k])
            self.multiply(above, self.weights.maps[k].mT, below)
            _mask_slope(below, self.flows[k - 1], 0.0, grad_input=below)
        self.multiply(self._x.mT, self.slopes[0], self.weights.slopes[0])
        for slopes, biases in self._sums:
            torch.sum(slopes, dim=-2, out=biases)
