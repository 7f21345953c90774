"""Maps of columns with many digits."""

from fractions import Fraction

import mpmath

DIGITS = 1000  # more than the smallest and the largest number are apart


def exact_map(bend, center, scale, z):
    """Return what a number is mapped to, as a number of mpmath; z may be a fraction."""
    with mpmath.workdps(DIGITS):
        center, scale = mpmath.mpf(float(center)), mpmath.mpf(float(scale))
        z = mpmath.mpf(z.numerator) / z.denominator if isinstance(z, Fraction) else float(z)
        return _bent(bend, (z - center) / scale) - _bent(bend, -center / scale)


def as_fraction(number):
    """Return a number of mpmath as a fraction."""
    sign, mantissa, exponent, _ = number._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _bent(bend, u):
    if bend == "log_tails":
        return 3 * mpmath.asinh(u / 3)
    return u / mpmath.sqrt(1 + (u / 3) ** 2)
