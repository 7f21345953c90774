"""The rules that parameters of an estimator must keep, each with its words; what "auto" means."""

from __future__ import annotations

import math
import multiprocessing
import sys
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from psilonnet._numbers import is_real, is_whole
from psilonnet.estimators.architectures import ARCHITECTURES
from psilonnet.estimators.devices import is_device, why_no_device


class _Rule(NamedTuple):
    """What a parameter must be, as a test and in words; what else to say of a value."""

    holds: Callable[[Any], bool]
    words: str
    why_not: Callable[[Any], str] | None = None


def _one_of(*choices: str) -> _Rule:
    """Return the rule that a parameter is one of some words."""
    said = ", ".join(map(repr, choices))
    return _Rule(lambda value: isinstance(value, str) and value in choices, f"one of {said}")


def _whole(least: int) -> _Rule:
    """Return the rule that a parameter is a whole number."""
    return _Rule(lambda v: is_whole(v) and v >= least, f"a whole number of at least {least}")


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


def _are_knots(value: Any) -> bool:
    return _one_or_different(value, lambda v: is_whole(v) and v >= 0 and v != 1)


def _is_validation(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(hasattr(p, "__len__") and len(p) == 2 for p in value)
    return (is_whole(value) and value >= 2) or (
        is_real(value) and not is_whole(value) and 0 < value < 1
    )


FLAG = _Rule(lambda value: isinstance(value, (bool, np.bool_)), "True or False")

RULES: dict[str, _Rule] = {
    "architecture": _one_of(*ARCHITECTURES),
    "width": _whole(1),
    "depth": _whole(1),
    "knots": _Rule(
        _are_knots,
        "0 for none, at least 2 pieces per column, or a list of different such numbers",
    ),
    "reg_strength": _Rule(
        _is_strength, "'auto', a number of at least 0, or a list of different such numbers"
    ),
    "selection": _one_of("average", "best", "one_standard_error"),
    "validation": _Rule(
        _is_validation,
        "a fraction between 0 and 1, a number of folds of at least 2, or a list of splits, each a "
        "pair of positions of rows to train on and to hold out",
    ),
    "n_members": _whole(1),
    "prune": FLAG,
    "scaling": _one_of("standard", "robust", "log_tails"),
    "loss": _one_of("squared_error", "absolute_error", "huber"),
    "class_weight": _Rule(
        lambda v: v is None or isinstance(v, Mapping) or (isinstance(v, str) and v == "balanced"),
        "None, 'balanced' or a dict from class to weight",
    ),
    "calibrate": FLAG,
    "max_steps": _Rule(
        lambda v: v == "auto" if isinstance(v, str) else is_whole(v) and v >= 1,
        "'auto' or a whole number of at least 1",
    ),
    "batch_size": _whole(1),
    "learning_rate": _Rule(lambda v: is_real(v) and v > 0, "a number above 0"),
    "device": _Rule(
        is_device,
        "the name of a torch device that is there, such as 'cpu' or 'cuda'",
        why_no_device,
    ),
    "verbose": _Rule(
        lambda v: isinstance(v, (bool, np.bool_)) or is_whole(v) or v == "auto",
        "True, False or 'auto'",
    ),
}


def check_parameters(owner: str, parameters: Mapping[str, Any]) -> None:
    """Refuse the first parameter that breaks its rule."""
    for name, value in parameters.items():
        rule = RULES.get(name)
        if rule is not None and not rule.holds(value):
            why = f": {rule.why_not(value)}" if rule.why_not else ""
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {rule.words}. Got {value!r} instead"
                f"{why}."
            )


def auto_steps(rows: int) -> int:
    """Return how many steps a training takes by default.

    Four per row, at least 1,000, and at most 3,000 for up to 2,000 rows; from there on that limit
    grows with the root of the rows, to 10,000.

    >>> [auto_steps(rows) for rows in (100, 500, 2000, 8000, 100_000)]
    [1000, 2000, 3000, 6000, 10000]
    """
    enough = round(3000 * math.sqrt(max(1.0, rows / 2000)))
    return min(10_000, max(1000, min(4 * rows, enough)))


def show_progress(verbose: Any) -> bool:
    """Return whether to show a bar; "auto" shows it in terminals and notebooks."""
    if verbose != "auto":
        return bool(verbose)
    interactive = sys.stderr.isatty() or "ipykernel" in sys.modules
    return interactive and multiprocessing.parent_process() is None
