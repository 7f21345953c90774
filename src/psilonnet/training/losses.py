"""Losses of single rows: ``loss(output, target)`` with one number per row and member.

Outputs have the shape ``(*members, rows, outputs)``; targets broadcast against them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor], Tensor]


def _check_outputs(output: Tensor, target: Tensor) -> None:
    if output.shape[-1] != target.shape[-1]:  # one of them would be broadcast
        raise ValueError(
            f"A regression on {target.shape[-1]} targets needs as many outputs. "
            f"Got a network with {output.shape[-1]}."
        )


def _errors(output: Tensor, target: Tensor) -> Tensor:
    _check_outputs(output, target)
    return output - target


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Return ``|| output - target ||^2 / outputs`` of each row."""
    return _errors(output, target).square().mean(dim=-1)


def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Return ``|| output - target ||_1 / outputs`` of each row."""
    return _errors(output, target).abs().mean(dim=-1)


def huber(output: Tensor, target: Tensor) -> Tensor:
    """Return half the squared error up to an error of 1 and the absolute error beyond."""
    size = _errors(output, target).abs()
    return torch.where(size < 1, 0.5 * size.square(), size - 0.5).mean(dim=-1)


def poisson(output: Tensor, target: Tensor) -> Tensor:
    """Return half the Poisson deviance of each row; outputs are logarithms of the means.

    The mean of ``exp(z) - t - t (z - log t)`` over the outputs: 0 where ``exp(z)`` is the target
    ``t``, which is at least 0.
    """
    _check_outputs(output, target)
    rest: Tensor = torch.special.xlogy(target, target) - target
    return (output.exp() - target * output + rest).mean(dim=-1)


@dataclass(frozen=True)
class Pinball:
    """The loss whose least expectation is at quantiles: ``loss(output, target)``.

    ``q e`` where the target is above the output by ``e``, and ``(1 - q) e`` where it is below by
    ``e``; the mean over the outputs.

    Parameters
    ----------
    levels : tuple of float between 0 and 1
        One level for all outputs, or one for each.
    """

    levels: tuple[float, ...] = (0.5,)

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the loss of each row."""
        error = _errors(output, target)
        return (0.5 * error.abs() + self._lean(output) * error).mean(dim=-1)

    def slope(self, output: Tensor, target: Tensor) -> Tensor:
        """Return the slope in the outputs; 1/2 - q where output and target are equal."""
        slope = (output - target).sgn_().mul_(0.5).add_(self._lean(output))
        return slope.div_(output.shape[-1])

    def _lean(self, output: Tensor) -> Tensor:
        if len(self.levels) not in (1, output.shape[-1]):
            raise ValueError(
                f"A network of {len(self.levels)} quantiles needs as many outputs. Got a network "
                f"with {output.shape[-1]}."
            )
        return 0.5 - output.new_tensor(self.levels)


def binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of one logit against targets between 0 and 1."""
    if output.shape[-1] != 1:
        raise ValueError(
            "A binary cross-entropy needs one output, the logit. Got a network with "
            f"{output.shape[-1]}: use 'cross_entropy' for classes."
        )
    # softplus(z) - t z, stable for large logits of either sign; from 40 on, softplus(z) is z.
    softplus = functional.softplus(output, threshold=40)
    return torch.addcmul(softplus, target, output, value=-1).squeeze(-1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of logits against class numbers of shape (rows, 1)."""
    index = target.long().expand(*output.shape[:-1], 1)
    return -functional.log_softmax(output, dim=-1).gather(-1, index).squeeze(-1)


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "huber": huber,
    "poisson": poisson,
    "binary_cross_entropy": binary_cross_entropy,
    "cross_entropy": cross_entropy,
}


def _squared_error_slope(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).mul_(2 / output.shape[-1])


def _absolute_error_slope(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).sgn_().div_(output.shape[-1])


def _huber_slope(output: Tensor, target: Tensor) -> Tensor:
    return (output - target).clamp_(-1, 1).div_(output.shape[-1])


def _poisson_slope(output: Tensor, target: Tensor) -> Tensor:
    return output.exp().sub_(target).div_(output.shape[-1])


def _binary_cross_entropy_slope(output: Tensor, target: Tensor) -> Tensor:
    return torch.sigmoid(output).sub_(target)


def _cross_entropy_slope(output: Tensor, target: Tensor) -> Tensor:
    index = target.long().expand(*output.shape[:-1], 1)
    slope = torch.softmax(output, dim=-1)
    return slope.scatter_add_(-1, index, slope.new_full((), -1.0).expand(index.shape))


# The slope of each named loss in the outputs, of the shape of the outputs.
SLOPES: dict[Loss, Loss] = {
    squared_error: _squared_error_slope,
    absolute_error: _absolute_error_slope,
    huber: _huber_slope,
    poisson: _poisson_slope,
    binary_cross_entropy: _binary_cross_entropy_slope,
    cross_entropy: _cross_entropy_slope,
}


def slope_of(loss: Loss) -> Loss | None:
    """Return the slope of a loss in the outputs, if it is written out."""
    if isinstance(loss, Pinball):
        return loss.slope
    return next((slope for own, slope in SLOPES.items() if own is loss), None)


def loss_words(loss: object) -> str:
    """Return the name of a loss: the word itself, or the module and name of a callable.

    Examples
    --------
    >>> loss_words("huber"), loss_words(huber)
    ('huber', 'psilonnet.training.losses.huber')
    """
    if isinstance(loss, str):
        return loss
    named = loss if hasattr(loss, "__qualname__") else type(loss)
    return f"{named.__module__}.{named.__qualname__}"


def get_loss(loss: str | Loss) -> Loss:
    """Return a loss by its name, or the callable itself."""
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"The 'loss' must be a callable or one of {sorted(LOSSES)}. Got {loss!r} instead."
        )
    return LOSSES[loss]
