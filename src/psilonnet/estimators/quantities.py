"""The numbers that a regressor learns to predict, as users hand them over."""

from __future__ import annotations

import datetime
import math
import reprlib
from decimal import Decimal
from numbers import Complex, Real
from typing import Any, NoReturn

import narwhals as nw
import numpy as np

from psilonnet.tables import missing_cells, unmasked

Array = np.ndarray[Any, Any]
CLASSES = "use PSiLONClassifier if they are classes"
CATEGORIES = f"categories: {CLASSES}, or turn them into numbers"
LARGEST = 1e150
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def check_quantities(y: Any) -> Array:
    """Return a target as floats of shape (rows,) or (rows, targets); none is missing or infinite.

    Nothing but numbers is taken for numbers: words that look like them are not converted.
    """
    given = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(given, nw.Series):
        numbers = _from_series(given)
    elif isinstance(given, nw.DataFrame):
        columns = [_from_series(column) for column in given.iter_columns()]
        numbers = np.stack(columns, axis=1) if columns else np.empty((len(given), 0))
    else:
        numbers = _from_array(_as_array(y))
    if numbers.ndim not in (1, 2) or numbers.shape[-1] == 0:
        raise ValueError(
            f"The target must have shape (rows,) or (rows, targets). Got {numbers.shape} instead."
        )
    _check_finite(numbers)
    return numbers


def _as_array(y: Any) -> Array:
    if getattr(getattr(y, "dtype", None), "name", "") == "category":
        _refuse(CATEGORIES)
    try:
        return np.asarray(unmasked(y))
    except ValueError as error:
        raise ValueError(
            "The target must have shape (rows,) or (rows, targets). Got rows of different length."
        ) from error


def _from_series(series: nw.Series[Any]) -> Array:
    if series.dtype in (nw.Categorical, nw.Enum):
        _refuse(CATEGORIES)
    return _from_array(series.to_numpy())


def _from_array(values: Array) -> Array:
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    flat = values.reshape(-1)
    if flat.dtype.kind in "mM":
        _refuse("times: turn them into numbers, such as days")
    cells = flat.astype(object)
    missing = missing_cells(cells)
    numbers = np.full(len(cells), np.nan)
    numbers[~missing] = _from_cells(cells[~missing])
    return np.asarray(numbers.reshape(values.shape))


def _from_cells(cells: Array) -> list[float]:
    """Return cells that are Python objects as floats, or tell what they are."""
    strange = [v for v in cells if not _is_number(v)]
    if strange:
        _refuse(_what(strange, all_cells=len(strange) == len(cells)))
    try:
        return [float(v) for v in cells]
    except OverflowError:
        largest = max(cells, key=abs)
        raise ValueError(
            f"The target must be numbers below 1.8e308. Got one of {len(str(largest))} figures: "
            "take its logarithm, or another unit."
        ) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _what(strange: list[Any], *, all_cells: bool) -> str:
    """Return what cells that are no numbers are, and what to do about it."""
    first = strange[0]
    if isinstance(first, (str, bytes)):
        return _words(strange, all_cells=all_cells)
    if isinstance(first, (bool, np.bool_)):
        return f"booleans: {CLASSES}, or turn them into 0 and 1 with astype(float)"
    if isinstance(first, TIMES):
        return "times: turn them into numbers, such as days"
    if isinstance(first, Complex):
        return f"{first!r}. Complex data not supported: predict its parts as two targets"
    return f"{reprlib.repr(first)} of type {type(first).__name__}: turn it into a number"


def _words(words: list[Any], *, all_cells: bool) -> str:
    if all(map(_looks_like_number, words)):
        return f"numbers as words, such as {words[0]!r}: convert them, such as with astype(float)"
    if all_cells:
        return f"words such as {words[0]!r}: {CLASSES}, or turn them into numbers"
    return f"words such as {words[0]!r} among others: turn them into numbers, or drop these rows"


def _looks_like_number(word: Any) -> bool:
    try:
        return isinstance(word, (str, bytes)) and math.isfinite(float(word))
    except ValueError:
        return False


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"The target of a regressor must be numbers. Got {what}.")


def _check_finite(numbers: Array) -> None:
    bad = ~np.isfinite(numbers)
    if not bad.any():
        _check_size(numbers)
        return
    row = int(np.argwhere(bad)[0][0])
    if np.isnan(numbers[row]).any():
        raise ValueError(
            f"The target must not be missing: Input y contains NaN or None in row {row}. Drop such "
            "rows."
        )
    raise ValueError(
        f"The target must be finite: Input y contains infinity in row {row}. Replace it by a "
        "number, or drop such rows."
    )


def _check_size(numbers: Array) -> None:
    """Refuse numbers whose squares overflow, and with them every score."""
    large = np.abs(numbers) > LARGEST
    if large.any():
        row = int(np.argwhere(large)[0][0])
        raise ValueError(
            f"The target must lie between {-LARGEST:g} and {LARGEST:g}, so that its squares can be "
            f"summed. Got {numbers[large][0]:g} in row {row}: take another unit, or its logarithm."
        )
