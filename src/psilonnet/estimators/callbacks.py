"""Callbacks of a user in the trainings of a fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psilonnet.training import Callback, Checkpoints


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Return the callbacks that were given to a fit."""
    given = () if callbacks is None else callbacks
    hooks = tuple(given) if isinstance(given, Iterable) else (given,)
    strange = [hook for hook in hooks if not isinstance(hook, Callback)]
    if strange or not isinstance(given, Iterable):
        raise TypeError(
            "The 'callbacks' must be a list of psilonnet.training.Callback. Got "
            f"{strange[0] if strange else given!r}: put it into a list, and make its class a "
            "subclass of Callback."
        )
    if any(isinstance(hook, Checkpoints) for hook in hooks):
        raise ValueError(
            "A fit trains several populations and keeps snapshots on the way, which checkpoints "
            "do not hold. Got Checkpoints among the 'callbacks': leave it out, or use it with a "
            "psilonnet.training.Run of your own."
        )
    return hooks
