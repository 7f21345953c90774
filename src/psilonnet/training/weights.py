"""All weights of some members of a flat population, and the way back to their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import one_hot

from psilonnet.functional import smallest_norm
from psilonnet.training.weight_rows import FirstRows, OtherRows

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import Network

ORDERS = {"l1": 1, "l2": 2}


class Lines(NamedTuple):
    """The numbers of some members by what they stand for.

    Attributes
    ----------
    first : Tensor of shape (members, pieces, in, width)
        Directions of the first layer.
    others : Tensor of shape (members, rows, width)
        Directions of all layers above it.
    lengths, biases : Tensor of shape (members, all of the network)
    """

    first: Tensor
    others: Tensor
    lengths: Tensor
    biases: Tensor


class Shape(NamedTuple):
    """The shape of a plain ReLU network; outputs and lengths have one entry for each layer."""

    order: int  # of the norm of the rows
    pieces: int
    inputs: int
    outputs: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, net: Network) -> Shape:
        """Return the shape of a population's members."""
        layers = net.layers
        _, pieces, inputs = layers[0].direction.shape[1:]
        return cls(
            ORDERS[layers[0].normalization],
            pieces,
            inputs,
            tuple(layer.direction.shape[1] for layer in layers),
            tuple(x.length.shape[1] for x in layers if x.length is not None),
        )

    @property
    def width(self) -> int:
        """The number of neurons in a hidden layer."""
        return self.outputs[0]

    @property
    def depth(self) -> int:
        """The number of hidden layers."""
        return len(self.outputs) - 1

    def split(self, lines: Tensor) -> Lines:
        """Return the parts of a tensor of shape (members, numbers of a member)."""
        rows = sum(self.outputs[1:])
        sizes = (self.width * self.pieces * self.inputs, rows * self.width, sum(self.lengths))
        first, others, lengths, biases = lines.split_with_sizes((*sizes, sum(self.outputs)), dim=1)
        return Lines(
            first.view(-1, self.pieces, self.inputs, self.width),
            others.view(-1, rows, self.width),
            lengths,
            biases,
        )

    def length_of_rows(self) -> Tensor:
        """Return the place of the length of each row, of shape (rows of all layers,)."""
        places, start = [], 0
        for rows, own in zip(self.outputs, self.lengths, strict=True):
            places.append(start + torch.arange(own).expand(rows if own == 1 else own))
            start += own
        return torch.cat(places)


class Weights:
    """The weights of some members.

    Parameters
    ----------
    shape : Shape
    values, gradients : Lines
        Parameters, and where their gradients go: of the weights, until :meth:`pull_back`.

    Attributes
    ----------
    maps : list of Tensor of shape (members, in, out)
        The weight of each layer, such that ``x @ map`` is its product with a batch.
    slopes : list of Tensor
        Where the gradient of each weight goes: (members, in, out) for the first, else
        (members, out, in).
    """

    def __init__(self, shape: Shape, values: Lines, gradients: Lines) -> None:
        self.shape = shape
        self.first = FirstRows(values.first, gradients.first, shape.order)
        self.others = OtherRows(values.others, gradients.others, shape.order)
        above = shape.outputs[1:]
        self.maps = [self.first.weight.flatten(1, 2)]
        self.maps += [weight.mT for weight in self.others.weight.split_with_sizes(above, dim=1)]
        self.slopes = [gradients.first.flatten(1, 2), *gradients.others.split_with_sizes(above, dim=1)]
        self._lengths, self._length_slopes = values.lengths, gradients.lengths
        self._place = None
        if shape.lengths != shape.outputs:
            self._place = shape.length_of_rows()
            self._spread = one_hot(self._place).to(values.first.dtype)
        sizes = (5, len(values.first), sum(shape.outputs))
        self._row_lengths, self._norm, self._scale, self._along, self._normal = values.first.new_empty(
            sizes
        ).unbind(0)
        self._least = smallest_norm(values.first.dtype)

    def _halves(self, per_row: Tensor) -> tuple[Tensor, Tensor]:
        return per_row[:, : self.shape.width], per_row[:, self.shape.width :]

    def make(self) -> None:
        """Make the weights of the present directions and lengths; see Eq. (1)."""
        first, others = self._halves(self._norm)
        self.first.norm(first)
        self.others.norm(others)
        torch.threshold_(self._norm, self._least, 1.0)  # a zero row stays zero
        lengths = self._lengths
        if self._place is not None:
            lengths = torch.index_select(lengths, 1, self._place, out=self._row_lengths)
        torch.div(lengths, self._norm, out=self._scale)
        first, others = self._halves(self._scale)
        self.first.scale(first)
        self.others.scale(others)

    def pull_back(self) -> None:
        """Turn the gradients of the weights into those of directions and lengths; see Eq. (2)."""
        first, others = self._halves(self._along)
        self.first.along(first)
        self.others.along(others)
        self._along.div_(self._norm)
        torch.mul(self._along, self._scale, out=self._normal)
        if self.shape.order == 2:
            self._normal.div_(self._norm)
        scale, normal = self._halves(self._scale), self._halves(self._normal)
        self.first.pull_back(scale[0], normal[0])
        self.others.pull_back(scale[1], normal[1])
        if self._place is None:
            self._length_slopes.copy_(self._along)
        else:
            torch.mm(self._along, self._spread, out=self._length_slopes)

    def add_path_norm(self, strengths: Tensor) -> Tensor:
        """Return the improved bound; add its gradient times the strengths to the weights'.

        See Eq. (11) for the bound. With ``M_k = max_t |W_k|``, ``u_k = M_k u_(k-1)`` from the
        inputs up and ``d_(k-1) = M_k' d_k`` from the outputs down, it is the sum of the last u, and
        its slope in ``M_k`` is ``d_k u_(k-1)'``.
        """
        above = self.shape.outputs[1:]
        self.others.make_magnitude()
        matrices = self.others.magnitude.split_with_sizes(above, dim=1)
        reach = [self.first.reach(self._halves(self._scale)[0]).unsqueeze(-1)]  # u, (members, out, 1)
        for matrix in matrices:
            reach.append(matrix @ reach[-1])
        pull = self._along  # d of all rows; needed by pull_back only later
        parts = [part.unsqueeze(1) for part in pull.split_with_sizes(self.shape.outputs, dim=1)]
        parts[-1].copy_(strengths[:, None, None])
        for k in range(len(matrices), 0, -1):
            torch.bmm(parts[k], matrices[k - 1], out=parts[k - 1])
        first, others = self._halves(pull.mul_(self._scale.sgn()))
        self.first.penalise(first)
        slopes = self.others.signs(others).split_with_sizes(above, dim=1)
        for own, slope, below in zip(self.slopes[1:], slopes, reach[:-1], strict=True):
            own.addcmul_(slope, below.mT)
        return reach[-1].sum(dim=(-2, -1))


def add_closed_form(
    lengths: Tensor, slopes: Tensor, shape: Shape, strengths: Tensor, penalties: Tensor
) -> None:
    """Write the closed form; add its gradient times the strengths to the lengths'; see Eq. (15).

    Parameters
    ----------
    lengths, slopes : Tensor of shape (members, lengths of all layers)
    shape : Shape
    strengths, penalties : Tensor of shape (members,)
    """
    layers, count = len(shape.outputs), shape.outputs[-1]
    sizes = lengths.abs()
    if count > 1:
        last = sizes[:, layers - 1 :].sum(dim=1, keepdim=True)
        sizes = torch.cat((sizes[:, : layers - 1], last), dim=1)  # (members, layers)
    # The product of the others, also where one of them is zero.
    own = torch.eye(layers, dtype=torch.bool)
    others = sizes.unsqueeze(-2).masked_fill(own, 1.0).prod(dim=-1)
    torch.mul(others[:, 0], sizes[:, 0], out=penalties)
    others.mul_(strengths.unsqueeze(-1))
    if count > 1:
        others = torch.cat((others[:, :-1], others[:, -1:].expand(-1, count)), dim=1)
    slopes.addcmul_(lengths.sgn(), others)
