"""The pruning stage: over the last steps the weights move from the oblique to the projected.

The projection depends on the scale of the directions, weight normalisation does not: large rows
become very sparse, rows of norm below one become *denser*. So the scale at the start of the
stage is free, and sets the sparsity.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import torch

from psilonnet.functional import row_norm

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import Network
    from psilonnet.training.adam import Adam

DROPS = 8  # parts in which neurons are dropped: what is left makes up for each
LEAST_NORM = 2.0  # of a row that was longer and loses what it read of dropped neurons


@dataclass(frozen=True)
class Pruning:
    """When and from which scale a run prunes.

    Parameters
    ----------
    steps : int
        The length of the stage at the end of training.
    row_norm : float or tuple of float, optional
        Bring every row of every direction to this norm, or to that of its member, when the stage
        begins. The larger, the sparser. By default rows stay as training left them, as in the
        paper.
    settle : int, default=0
        How many of these steps, the last, train on with the projection alone. The paper has none;
        but its learning rate is then close to zero when the last small weights go.
    drop : float or tuple of float, default=0
        Once only the projection is left, drop the neurons that carry the least of the bound: in
        each layer those that carry this share of it together, or the share of the member. It is
        done in eight parts over the steps to settle: :func:`drop_neurons_`. What a part leaves
        over, as neurons are whole, is added to the next; after the last one less than a neuron is
        left. The paper keeps them all.

    Notes
    -----
    A tuple begins again after its end.
    """

    steps: int = 1000
    row_norm: float | tuple[float, ...] | None = None
    settle: int = 0
    drop: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        check_count("Pruning", "steps", self.steps)
        if not 0 <= self.settle <= self.steps:
            raise ValueError(
                f"The 'settle' of a Pruning must be between 0 and its {self.steps} steps. "
                f"Got {self.settle!r}."
            )
        if not all(0 <= share < 1 for share in _each(self.drop)):
            raise ValueError(
                f"The 'drop' of a Pruning must be at least 0 and below 1. Got {self.drop!r}."
            )
        if self.row_norm is not None and not all(norm > 0 for norm in _each(self.row_norm)):
            raise ValueError(f"The 'row_norm' of a Pruning must be above 0. Got {self.row_norm!r}.")

    def norm_of(self, member: int) -> float | None:
        """Return the norm for the rows of a member."""
        return None if self.row_norm is None else _of_member(self.row_norm, member)

    def drop_of(self, member: int) -> float:
        """Return the share of the bound whose neurons a member loses."""
        return _of_member(self.drop, member)

    def part_at(self, step: int, total: int) -> float:
        """Return which part of what is dropped goes at a step."""
        first, gap = self.ends_at(total), self.settle / (DROPS + 1)
        return sum(step == first + int(k * gap) for k in range(DROPS)) / DROPS

    def mix_at(self, step: int, total: int) -> float:
        """Return the share of the projection at a step: from 0 before the stage to 1.

        Implements Section 2.2, the annealing of alpha.
        """
        done = step - (total - self.steps) + 1
        return min(1.0, max(0.0, done / max(1, self.steps - self.settle)))

    def begins_at(self, total: int) -> int:
        """Return the first step of the stage."""
        return max(0, total - self.steps)

    def ends_at(self, total: int) -> int:
        """Return the first step with the projection alone."""
        return max(self.begins_at(total), total - self.settle - 1)


def check_count(owner: str, name: str, value: float) -> None:
    """Refuse what is not a number of steps or rows."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"The {name!r} of a {owner} must be a whole number of at least 1. Got {value!r}."
        )


def _each(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _of_member(value: float | tuple[float, ...], member: int) -> float:
    return _each(value)[member % len(_each(value))]


@torch.no_grad()
def rescale_rows_(net: Network, norms: Tensor, optimizer: Adam) -> None:
    """Give all rows of a member's directions one norm; moments follow: Adam sees no break."""
    for layer in net.layers:
        _bring_rows_to_(layer.direction, norms.to(layer.direction).unsqueeze(-1), optimizer)


def _bring_rows_to_(direction: Tensor, norms: Tensor, optimizer: Adam) -> None:
    factor = (norms / row_norm(direction).clamp(min=1e-30))[..., None, None]
    direction.mul_(factor)
    state = optimizer.state[direction]
    state["exp_avg"].div_(factor)  # gradients shrink as directions grow
    state["exp_avg_sq"].div_(factor.square())


@torch.no_grad()
def drop_neurons_(net: Network, shares: Tensor, optimizer: Adam) -> Tensor:
    """Drop the neurons that carry the least of the bound; return what is left to drop.

    No row of the next layer reads a dropped neuron. As all rows of a layer have one norm, a neuron
    carries what the paths from it to the outputs weigh. From the top layer down, the lightest
    neurons are dropped that have a member's share of their layer together, but never the heaviest.
    Under the projection alone their weights stay zero. Rows that lose much are brought back to a
    norm of 2, or to their own if it was less: short ones would become dense. A residual block
    passes its inputs on whatever its weights are, so none of them is dropped.

    Parameters
    ----------
    net : Network
    shares : Tensor that broadcasts to (*members, layers - 1), for the neurons below each layer

    Returns
    -------
    Tensor of shape (*members, layers - 1)
        What the dropped neurons have less than their share.
    """
    readers = net.layers[1:]
    v, above = readers[0].direction, None
    left = shares.to(v).expand(*v.shape[:-3], len(readers)).clone()
    for k, layer in reversed([*enumerate(readers)]):
        weight = layer.weight.abs().amax(dim=-2)  # (..., out, in)
        mass = weight.sum(dim=-2) if above is None else (above.unsqueeze(-2) @ weight).squeeze(-2)
        if layer.residual:
            above = mass if above is None else mass + above
            continue
        dropped = _lightest(mass, left[..., k])
        above = mass.masked_fill(dropped, 0.0)
        gone = mass.masked_fill(~dropped, 0.0).sum(dim=-1)
        left[..., k] -= gone / mass.sum(dim=-1).clamp(min=1e-30)
        _drop_inputs_(layer.direction, dropped, optimizer)
    return left


def _lightest(mass: Tensor, share: Tensor) -> Tensor:
    """Return which neurons are the lightest that have a share of all mass together."""
    lightest, order = mass.sort(dim=-1)
    most = share.unsqueeze(-1) * lightest.sum(dim=-1, keepdim=True)
    few = lightest.cumsum(dim=-1) <= most
    few[..., -1] = False
    return torch.zeros_like(few).scatter(-1, order, few)


def _drop_inputs_(direction: Tensor, dropped: Tensor, optimizer: Adam) -> None:
    """Set the weights of some inputs to zero, and lengthen rows that have become short."""
    columns, norms = dropped[..., None, None, :], row_norm(direction)
    direction.masked_fill_(columns, 0.0)
    optimizer.state[direction]["exp_avg"].masked_fill_(columns, 0.0)
    least = norms.clamp(max=LEAST_NORM)
    _bring_rows_to_(direction, row_norm(direction).maximum(least), optimizer)


@torch.no_grad()
def row_norms(net: Network) -> list[Tensor]:
    """Return the mean norm of the rows of each layer's direction, each of shape (members,)."""
    return [row_norm(layer.direction).mean(dim=-1) for layer in net.layers]


@torch.no_grad()
def live_widths(net: Network) -> list[int]:
    """Return how many inputs and neurons of a pruned network still reach the output.

    A neuron is alive if some live neuron above has a non-zero weight on it.
    """
    alive = torch.ones(net.layers[-1].direction.shape[-3], dtype=torch.bool)
    widths = [int(alive.sum())]
    for layer in reversed(net.layers):
        used = (layer.weight != 0).any(dim=-2)[alive].any(dim=0)  # (in,)
        alive = used | alive if layer.residual else used
        widths.append(int(alive.sum()))
    return widths[::-1]
