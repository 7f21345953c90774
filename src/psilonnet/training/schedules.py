"""Learning-rate schedules: pure functions of the fraction of training that is done."""

from collections.abc import Callable
from functools import partial
from math import cos, pi

Schedule = Callable[[float], float]


def trapezoid(
    fraction: float,
    *,
    low: float = 1e-4,
    high: float = 2e-3,
    rise: float = 0.05,
    fall: float = 0.5,
) -> float:
    """Rise from low to high, stay there, and fall back to low over the last part.

    Implements App. (C.1), its schedule: 5 % up, 45 % level, 50 % down.

    Examples
    --------
    >>> trapezoid(0.0), trapezoid(0.3), trapezoid(1.0)
    (0.0001, 0.002, 0.0001)
    """
    ramp = min(1.0, fraction / rise, (1 - fraction) / fall)
    return low + (high - low) * ramp


def one_cycle(
    fraction: float,
    *,
    start: float = 1e-4,
    high: float = 2e-2,
    end: float = 1e-5,
    peak: float = 0.2,
) -> float:
    """Rise from start to high along a cosine until ``peak``, then fall to end along another.

    Implements App. (C.2), its schedule. Adam's betas are not touched.

    Examples
    --------
    >>> [round(one_cycle(fraction), 6) for fraction in (0.0, 0.2, 1.0)]
    [0.0001, 0.02, 1e-05]
    """
    if fraction < peak:
        return _cosine(start, high, fraction / peak)
    return _cosine(high, end, (fraction - peak) / (1 - peak))


def _cosine(a: float, b: float, fraction: float) -> float:
    return b + (a - b) * (1 + cos(pi * fraction)) / 2


def trapezoid_of(learning_rate: float) -> Schedule:
    """Return the trapezoid with another top; its low ends keep the paper's ratio of 1 to 20."""
    return partial(trapezoid, low=learning_rate / 20, high=learning_rate)
