"""Means, standard deviations and quantiles of weighted rows; a weight of 2 is two equal rows."""

from __future__ import annotations

from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]

SMALL = 1e-120  # numbers that are larger and differ do so by 1e-136: its square does not underflow


def weighted_mean_and_deviation(values: Floats, weight: Floats) -> tuple[float, float]:
    """Return mean and standard deviation; (0, 0) of no rows.

    Examples
    --------
    >>> weighted_mean_and_deviation(np.array([0.0, 3.0]), np.array([2.0, 1.0]))[0]
    1.0
    """
    total = weight.sum()
    if total == 0:
        return 0.0, 0.0
    largest = float(np.abs(values).max())
    if largest > 0 and not SMALL < largest < 1 / SMALL:  # squares would overflow or underflow
        inner = weighted_mean_and_deviation(values / largest, weight)
        return inner[0] * largest, inner[1] * largest
    mean = float((values * (weight / total)).sum())
    return mean, float(np.sqrt(((values - mean) ** 2 * (weight / total)).sum()))


def weighted_quantile(values: Floats, weight: Floats, levels: Floats) -> Floats:
    """Return quantiles by linear interpolation between the midpoints of the rows' weights.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), np.array([0.5]))
    array([2.])
    """
    if len(values) == 0:
        return np.zeros(len(levels))
    points, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weights=weight)
    middle = np.cumsum(mass) - mass / 2
    quantiles: Floats = np.interp(np.asarray(levels) * mass.sum(), middle, points)
    return quantiles


def within_fences(values: Floats, weight: Floats) -> Floats:
    """Return the values, those farther than three quartile ranges from the quartiles pulled in.

    These are Tukey's "far out" values. If the quartiles are equal, nothing is far out.

    Examples
    --------
    >>> within_fences(np.array([-999.0, 1, 2, 3, 4, 5]), np.ones(6))
    array([-8.,  1.,  2.,  3.,  4.,  5.])
    """
    first, third = weighted_quantile(values, weight, np.array([0.25, 0.75]))
    with np.errstate(over="ignore"):  # a fence at infinity pulls nothing in
        reach = 3 * (third - first)
        return np.clip(values, first - reach, third + reach) if reach > 0 else values
