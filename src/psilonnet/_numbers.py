"""What counts as a number in parameters and amounts."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; booleans are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Whether a value is a finite number; booleans are not numbers."""
    return (
        isinstance(value, Real)
        and not isinstance(value, (bool, np.bool_))
        and math.isfinite(float(value))
    )
