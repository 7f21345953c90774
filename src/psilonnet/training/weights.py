"""All weights of some members of a flat population, and the way back to their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.nn.functional import one_hot

from psilonnet.functional import smallest_norm
from psilonnet.training.weight_rows import FirstRows, OtherRows, PerRow

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
        count, width, rows = len(values.first), shape.width, sum(shape.outputs)
        self._numbers = PerRow(*values.first.new_zeros(len(PerRow._fields), count, rows).unbind(0))
        self._mix = 0.0
        below, above = self._numbers.part(0, width), self._numbers.part(width, rows)
        self.first = FirstRows(values.first, gradients.first, below, shape.order)
        self.others = OtherRows(values.others, gradients.others, above, shape.order)
        sizes = shape.outputs[1:]
        self.maps = [self.first.weight.flatten(1, 2)]
        self.maps += [weight.mT for weight in self.others.weight.split_with_sizes(sizes, dim=1)]
        self.slopes = [gradients.first.flatten(1, 2)]
        self.slopes += gradients.others.split_with_sizes(sizes, dim=1)
        self._lengths = _Lengths(shape, values.lengths, gradients.lengths)
        self._path = _PathNorm(self)
        self._least = smallest_norm(values.first.dtype)

    def prune(self, mix: float) -> None:
        """Set the share of the projection in the weights; see Eq. (5)."""
        if mix and not self._mix:
            self.first.begin_pruning()
            self.others.begin_pruning()
        self._mix = mix

    def make(self) -> None:
        """Make the weights of the present directions and lengths; see Eq. (1)."""
        numbers = self._numbers
        self.first.measure()
        self.others.measure()
        torch.threshold_(numbers.norm, self._least, 1.0)  # a zero row stays zero
        lengths = self._lengths.of_rows()
        torch.div(lengths, numbers.norm, out=numbers.scale)
        if self._mix:
            numbers.scale.mul_(1 - self._mix)
            torch.mul(lengths, self._mix, out=numbers.share)
        self.first.make()
        self.others.make()

    def pull_back(self) -> None:
        """Turn the gradients of the weights into those of directions and lengths; see Eq. (2)."""
        numbers = self._numbers
        self.first.multiply_out()
        self.others.multiply_out()
        numbers.along.div_(numbers.norm)
        torch.mul(numbers.along, numbers.scale, out=numbers.normal)
        if self.shape.order == 2:
            numbers.normal.div_(numbers.norm)
        self.first.pull_back()
        self.others.pull_back()
        if self._mix:
            numbers.along.lerp_(numbers.along_projected, self._mix)
        self._lengths.pull_back(numbers.along)

    def add_path_norm(self, strengths: Tensor) -> Tensor:
        """Return the improved bound; add its gradient times the strengths to the weights'."""
        return self._path.add(strengths)


class _Lengths:
    """The lengths of all rows, where layers share one or have one for each row."""

    def __init__(self, shape: Shape, values: Tensor, gradient: Tensor) -> None:
        self._values, self._gradient = values, gradient
        self._shared = shape.lengths != shape.outputs
        self._place = shape.length_of_rows()
        self._of_rows = values.new_empty(len(values), len(self._place))
        self._spread = one_hot(self._place).to(values.dtype) if self._shared else values

    def of_rows(self) -> Tensor:
        """Return the length of each row, of shape (members, rows)."""
        if not self._shared:
            return self._values
        return torch.index_select(self._values, 1, self._place, out=self._of_rows)

    def pull_back(self, slopes: Tensor) -> None:
        """Write the gradient of each length from those of the rows."""
        if self._shared:
            torch.mm(slopes, self._spread, out=self._gradient)
        else:
            self._gradient.copy_(slopes)


class _PathNorm:
    """The improved bound of the weights and its gradient.

    See Eq. (11). With ``M_k = max_t |W_k|``, ``u_k = M_k u_(k-1)`` from the inputs up and
    ``d_(k-1) = M_k' d_k`` from the outputs down, it is the sum of the last u, and its slope in
    ``M_k`` is ``d_k u_(k-1)'``.
    """

    def __init__(self, weights: Weights) -> None:
        outputs = weights.shape.outputs
        self._first, self._others = weights.first, weights.others
        self._sizes = outputs[1:]
        self._matrices = weights.others.magnitude.split_with_sizes(self._sizes, dim=1)
        self._slopes = weights.slopes[1:]
        self._scale = weights._numbers.scale
        pull = torch.empty_like(self._scale)  # d of all rows
        self._pulls = pull.unsqueeze(1).split_with_sizes(outputs, dim=2)
        self._pull = (pull, *pull.split_with_sizes((outputs[0], sum(self._sizes)), dim=1))

    def add(self, strengths: Tensor) -> Tensor:
        """Return the bound; add its gradient times the strengths to those of the weights."""
        self._others.make_magnitude()
        reach = [self._first.reach().unsqueeze(-1)]  # u, each (members, out, 1)
        for matrix in self._matrices:
            reach.append(torch.bmm(matrix, reach[-1]))
        self._pulls[-1].copy_(strengths[:, None, None])
        for k in range(len(self._matrices), 0, -1):
            torch.bmm(self._pulls[k], self._matrices[k - 1], out=self._pulls[k - 1])
        pull, first, others = self._pull
        pull.mul_(self._scale.sgn())
        self._first.penalise(first)
        signs = self._others.signs(others).split_with_sizes(self._sizes, dim=1)
        for own, sign, below in zip(self._slopes, signs, reach[:-1], strict=True):
            own.addcmul_(sign, below.mT)
        return reach[-1].sum(dim=(-2, -1))


class ClosedForm:
    """The closed form of the bound and its gradient; see Eq. (15).

    Parameters
    ----------
    shape : Shape
    values, gradients : Tensor of shape (members, lengths of all layers)
    strengths, penalties : Tensor of shape (members,)

    Notes
    -----
    For so few numbers calls of NumPy are quicker than those of torch, and than Python itself.
    """

    def __init__(
        self, shape: Shape, values: Tensor, gradients: Tensor, strengths: Tensor, penalties: Tensor
    ) -> None:
        self._inner, self._last = len(shape.outputs) - 1, shape.outputs[-1]
        self._values, self._gradients = values.numpy(), gradients.numpy()
        self._strengths, self._penalties = strengths.numpy()[:, None], penalties.numpy()
        self._own = np.eye(len(shape.outputs), dtype=bool)

    @np.errstate(over="ignore", invalid="ignore")  # such a member counts as diverged
    def add(self) -> None:
        """Write the penalties; add their gradients times the strengths to those of the lengths."""
        inner, last = self._inner, self._last
        sizes = np.abs(self._values)
        if last > 1:
            total = sizes[:, inner:].sum(axis=1, keepdims=True)
            sizes = np.concatenate((sizes[:, :inner], total), axis=1)  # (members, layers)
        # The product of the others, also where one of them is zero.
        others = np.where(self._own, 1, sizes[:, None]).prod(axis=-1)
        np.multiply(others[:, 0], sizes[:, 0], out=self._penalties)
        others *= self._strengths
        if last > 1:
            others = np.concatenate((others[:, :inner], others[:, inner:].repeat(last, 1)), axis=1)
        self._gradients += np.sign(self._values) * others
