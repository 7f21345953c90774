"""From a batch to losses, penalties and gradients: by autograd, or written out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

from psilonnet.nn import has_closed_form, shared_weights
from psilonnet.training.explicit import ExplicitGradients, is_explicit
from psilonnet.training.products import multiply_in

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import Network
    from psilonnet.training.batches import Batch, Rows
    from psilonnet.training.flat import Flat
    from psilonnet.training.losses import Loss


class Gradients(Protocol):
    """The gradients of a population."""

    @property
    def flat(self) -> Flat | None:
        """What holds all parameters and their gradients; None if each parameter has its own."""

    def prepare(self, rows: Rows) -> Rows:
        """Return the table that batches are to be taken from."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Set the gradients of ``mean(loss) + reg_strength * penalty`` of every member.

        Returns
        -------
        losses, penalties : Tensor of shape (members,)
        """

    def release(self) -> None:
        """Leave the network as an ordinary one."""


Whole = Callable[["Network"], nn.Module]  # from a network to the function that is trained


class _AutogradGradients:
    """The gradients of any population, loss and penalty; parameters as in :class:`Run`."""

    flat: Flat | None = None

    def __init__(
        self,
        net: Network,
        loss: Loss,
        penalty: Callable[..., Tensor],
        reg_strength: Tensor,
        whole: Whole | None = None,
    ) -> None:
        self.net, self.loss, self.penalty, self.strengths = net, loss, penalty, reg_strength
        self._function = net if whole is None else whole(net)
        self._closed = whole is None and has_closed_form(net)

    def prepare(self, rows: Rows) -> Rows:
        """Return the rows as they are."""
        return rows

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Differentiate ``sum(losses + reg_strength * penalties)``."""
        self.net.zero_grad(set_to_none=True)
        with nullcontext() if self._closed else shared_weights(self.net):
            losses = mean_losses(self._function, self.loss, batch)
            penalties = self.penalty(self._function)
            terms = [losses.sum()]
            if penalties.requires_grad:  # a penalty may be a constant
                terms.append(self.strengths.dot(penalties))
            torch.autograd.backward(terms)
        return losses.detach(), penalties.detach()

    def release(self) -> None:
        """Do nothing: the network is as it was."""


def make_gradients(
    net: Network,
    loss: Loss,
    penalty: Callable[..., Tensor],
    reg_strength: Tensor,
    precision: str,
    whole: Whole | None = None,
) -> Gradients:
    """Return the quickest way to the gradients of a population."""
    if whole is None and is_explicit(net, loss, penalty):
        return ExplicitGradients(net, loss, reg_strength, multiply_in(precision))
    return _AutogradGradients(net, loss, penalty, reg_strength, whole)


def mean_losses(net: nn.Module, loss: Loss, batch: Batch) -> Tensor:
    """Return the weighted mean loss of each member over a batch, of shape (members,)."""
    output = net(batch.x)
    losses = loss(output, batch.y)  # (members, rows)
    if losses.shape != output.shape[:-1]:
        raise ValueError(
            "A loss must return one number per member and row, of shape "
            f"{tuple(output.shape[:-1])}. Got {tuple(losses.shape)}."
        )
    return (losses if batch.weight is None else losses * batch.weight).mean(dim=-1)
