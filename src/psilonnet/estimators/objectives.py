"""What a regressor minimises, and what its network then sees of y."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet.estimators.number_targets import CountTarget, NumberTarget, QuantileTarget
from psilonnet.training import Pinball, loss_words

if TYPE_CHECKING:
    from psilonnet.training import Loss

Array = np.ndarray[Any, Any]


def make_loss(loss: str | Loss, quantile: Any) -> str | Loss:
    """Return the loss of a network by the parameters of a regressor."""
    return Pinball(_levels_of(quantile)) if _word(loss) == "quantile" else loss


def _word(loss: str | Loss) -> str:
    """Return the name of a loss of ours; callables may not like to be compared."""
    return loss if isinstance(loss, str) else ""


def _levels_of(quantile: Any) -> tuple[float, ...]:
    """Return the levels of one quantile or of several."""
    return tuple(float(level) for level in np.atleast_1d(quantile))


def check_objective(loss: str | Loss, quantile: Any, y: Array, weight: Array) -> None:
    """Refuse a loss, quantiles and a target of shape (rows, targets) that do not go together."""
    word = _word(loss)
    if not isinstance(loss, str):
        _check_own_loss(loss, y.shape[1])
    if (word == "quantile") != (quantile is not None):
        raise ValueError(
            "The 'quantile' parameter of PSiLONRegressor must be a number between 0 and 1, or "
            "increasing ones, for loss='quantile', and None for all other losses. Got "
            f"loss={loss_words(loss)!r} and quantile={quantile!r}: change one of them."
        )
    if np.ndim(quantile) and y.shape[1] > 1:
        raise ValueError(
            "A list of quantiles needs one target. Got a target with "
            f"{y.shape[1]} columns: fit one model for each, or ask for one quantile."
        )
    if word == "poisson":
        check_counts(y[weight > 0])
        if not (y[weight > 0] > 0).any(axis=0).all():
            raise ValueError(
                "A target of loss='poisson' must be above 0 in some row of weight above 0. Got a "
                "target that is 0 in all: there is nothing to learn."
            )


def check_counts(y: Array) -> None:
    """Refuse targets below 0."""
    if y.size and y.min() < 0:
        raise ValueError(
            "The targets of loss='poisson' must be at least 0: counts, or amounts per exposure. "
            f"Got {y.min():g} in some rows: use another loss, or drop these rows."
        )


def _check_own_loss(loss: Loss, targets: int) -> None:
    """Try a loss on a few outputs of two networks."""
    output = torch.linspace(-1, 1, 6 * targets).reshape(2, 3, targets).requires_grad_()
    values = loss(output, torch.linspace(-1, 1, 3 * targets).reshape(3, targets))
    said = f"shape {tuple(values.shape)}" if isinstance(values, torch.Tensor) else repr(values)
    if not isinstance(values, torch.Tensor) or values.shape != (2, 3) or not values.requires_grad:
        raise ValueError(
            "A loss of your own must return one number per row, as a tensor that torch can "
            "differentiate: loss(outputs, targets) of shape (networks, rows) for outputs of shape "
            f"(networks, rows, {targets}) and targets of shape (rows, {targets}). The loss "
            f"{loss_words(loss)!r} returned {said} for 2 networks and 3 rows"
            f"{'' if said != 'shape (2, 3)' else ', but no gradient'}: reduce the last axis only, "
            "by operations of torch."
        )


def make_number_target(loss: str | Loss, quantile: Any, y: Array, weight: Array) -> NumberTarget:
    """Return what a network sees of y, from rows in canonical form."""
    if _word(loss) == "quantile":
        return QuantileTarget.of(y, weight, _levels_of(quantile))
    return CountTarget.fit(y, weight) if _word(loss) == "poisson" else NumberTarget.fit(y, weight)
