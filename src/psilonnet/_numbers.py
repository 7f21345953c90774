"""What counts as a number in parameters and amounts."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

NONE = (bool, np.bool_, np.timedelta64)  # NumPy has durations among its whole numbers


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; booleans and durations are none."""
    return isinstance(value, Integral) and not isinstance(value, NONE)


def is_real(value: Any) -> bool:
    """Whether a value is a finite number; booleans and durations are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, NONE) and math.isfinite(value)
    except OverflowError:  # a whole number of more than 300 digits
        return False
