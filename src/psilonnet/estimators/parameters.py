"""The rules that parameters of an estimator must keep, each with its words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState

from psilonnet._numbers import is_real, is_whole
from psilonnet.estimators.designs import are_designs
from psilonnet.estimators.devices import is_device, why_no_device
from psilonnet.estimators.monotone import are_signs
from psilonnet.estimators.selection import SELECTIONS, is_selection


class _Rule(NamedTuple):
    """What a parameter must be, as a test and in words; what else to say of a value."""

    holds: Callable[[Any], bool]
    words: str
    why_not: Callable[[Any], str] | None = None


def _whole(least: int) -> _Rule:
    """Return the rule that a parameter is a whole number."""
    return _Rule(lambda v: is_whole(v) and v >= least, f"a whole number of at least {least}")


def _whole_or_auto(least: int) -> _Rule:
    """Return the rule that a parameter is a whole number or "auto"."""
    return _Rule(
        lambda v: v == "auto" if isinstance(v, str) else is_whole(v) and v >= least,
        f"'auto' or a whole number of at least {least}",
    )


def _one_or_different(value: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether a rule holds of a number, or of all numbers of a sequence without repeats."""
    if isinstance(value, Real):
        return holds(value)
    if not isinstance(value, (list, tuple, range, np.ndarray)):
        return False
    values = list(value)
    return len(values) > 0 and all(map(holds, values)) and len(set(values)) == len(values)


def _is_strength(value: Any) -> bool:
    if isinstance(value, str):
        return value == "auto"
    return _one_or_different(value, lambda v: is_real(v) and v >= 0)


def _is_quantile(value: Any) -> bool:
    if value is None:
        return True
    if not _one_or_different(value, lambda v: is_real(v) and 0 < v < 1):
        return False
    return isinstance(value, Real) or sorted(value) == list(value)


def _is_cv(value: Any) -> bool:
    if value is None or (is_whole(value) and value >= 2):
        return True
    return not isinstance(value, str) and (hasattr(value, "split") or isinstance(value, Iterable))


def _why_no_loss(value: Any) -> str:
    if not isinstance(value, str) or "." not in value:
        return ""
    return "a file keeps only the name of a loss of your own, so give it with set_params(loss=...)"


def _is_random_state(value: Any) -> bool:
    seed = is_whole(value) and 0 <= value < 2**32
    return value is None or value is np.random or isinstance(value, RandomState) or seed


def _why_no_random_state(value: Any) -> str:
    is_generator = isinstance(value, np.random.Generator)
    return "draw a number of it with integers(2**32)" if is_generator else ""


def _is_verbose(value: Any) -> bool:
    if isinstance(value, str):
        return value == "auto"
    return isinstance(value, (bool, np.bool_)) or (is_whole(value) and value in (0, 1, 2))


LOSSES = ("squared_error", "absolute_error", "huber", "quantile", "poisson")
FLAG = _Rule(lambda value: isinstance(value, (bool, np.bool_)), "True or False")

RULES: dict[str, _Rule] = {
    "designs": _Rule(
        are_designs, "'auto', or a list of different psilonnet.Design (or dicts of their fields)"
    ),
    "width": _whole_or_auto(1),
    "depth": _whole(1),
    "reg_strength": _Rule(
        _is_strength, "'auto', a number of at least 0, or a list of different such numbers"
    ),
    "selection": _Rule(
        is_selection, f"one of {tuple(SELECTIONS)}, or a weight of the bound of at least 0"
    ),
    "cv": _Rule(
        _is_cv,
        "None, a number of folds of at least 2, a splitter of scikit-learn, or splits, each a pair "
        "of positions of rows to train on and to hold out",
    ),
    "prune": FLAG,
    "loss": _Rule(
        lambda v: callable(v) or (isinstance(v, str) and v in LOSSES),
        f"one of {', '.join(map(repr, LOSSES))}, or a callable loss(outputs, targets)",
        _why_no_loss,
    ),
    "quantile": _Rule(_is_quantile, "None, a number between 0 and 1, or increasing ones in a list"),
    "class_weight": _Rule(
        lambda v: v is None or isinstance(v, Mapping) or (isinstance(v, str) and v == "balanced"),
        "None, 'balanced' or a dict from class to weight",
    ),
    "calibrate": FLAG,
    "monotonic_cst": _Rule(
        are_signs, "None, a dict from column name to -1, 0 or 1, or one of these for each column"
    ),
    "max_steps": _whole_or_auto(1),
    "batch_size": _whole(1),
    "learning_rate": _Rule(lambda v: is_real(v) and v > 0, "a number above 0"),
    "device": _Rule(
        is_device,
        "the name of a torch device that is there, such as 'cpu' or 'cuda'",
        why_no_device,
    ),
    "random_state": _Rule(
        _is_random_state,
        "None, a whole number from 0 to 4294967295, or a numpy.random.RandomState",
        _why_no_random_state,
    ),
    "verbose": _Rule(_is_verbose, "True, False, 2 (lines for logs) or 'auto'"),
}


def check_parameters(owner: str, parameters: Mapping[str, Any]) -> None:
    """Refuse the first parameter that breaks its rule."""
    for name, value in parameters.items():
        rule = RULES.get(name)
        if rule is not None and not rule.holds(value):
            reason = rule.why_not(value) if rule.why_not else ""
            why = f": {reason}" if reason else ""
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {rule.words}. Got {value!r} instead"
                f"{why}."
            )


def check_kept(owner: str, parameters: Mapping[str, Any]) -> None:
    """Refuse the first parameter that breaks its rule in a file.

    A device need not be there to predict, and of a loss of one's own a file has the name only.
    """
    loss = parameters.get("loss")
    is_name = isinstance(loss, str) and "." in loss
    left_out = ("device", "loss") if is_name else ("device",)
    check_parameters(owner, {k: v for k, v in parameters.items() if k not in left_out})
