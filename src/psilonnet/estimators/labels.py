"""The labels of classes, as users hand them over."""

from __future__ import annotations

from collections import Counter
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from sklearn.utils import column_or_1d

from psilonnet._names import some_of
from psilonnet._numbers import is_whole
from psilonnet._warnings import warn_user
from psilonnet.tables import missing_cells, unmasked

Array = np.ndarray[Any, Any]


def check_labels(y: Any) -> Array:
    """Return labels as an array of booleans, numbers or words; none may be missing."""
    if isinstance(y, (list, tuple)):
        _check_cells(y)  # NumPy would make words of all of them, of the missing ones too
    y = np.asarray(unmasked(y))
    if y.dtype.kind in "cmMSV":
        _refuse(y.flat[0])
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        _check_cells(y)
        y = _of_one_type(y)
    if y.dtype.kind == "f":
        _check_whole(y)
    return np.asarray(y)


def label_numbers(y: Any, classes: Array) -> Array:
    """Return the class number of each label; labels that are no classes get the one behind."""
    labels = check_labels(y).tolist()
    place = {label: k for k, label in enumerate(classes.tolist())}
    numbers = np.array([place.get(label, len(place)) for label in labels])
    if (numbers == len(place)).all():
        known, found = (some_of([repr(v) for v in dict.fromkeys(w)]) for w in (place, labels))
        raise ValueError(
            f"The labels must be classes of the model: {known}. None of y is; it holds {found}."
        )
    return numbers


def _refuse(label: Any) -> NoReturn:
    raise ValueError(
        f"Labels must be words, numbers or booleans. Got {label!r}: turn them into words."
    )


def warn_of_many_classes(classes: int, rows: int) -> None:
    """Warn if most classes have one row only, by the rule of scikit-learn."""
    if rows > 20 and classes > rows / 2:
        warn_user(
            f"y has {classes:,} classes in {rows:,} rows, so that most of them occur once and "
            "cannot be learned. If y is a quantity, use PSiLONRegressor; if it names the rows, "
            "predict another column."
        )


def warn_of_spaces(classes: Array) -> None:
    """Warn of classes that differ by spaces around them only."""
    words = [label for label in classes.tolist() if isinstance(label, str)]
    stripped = Counter(word.strip() for word in words)
    if alike := [word for word in words if stripped[word.strip()] > 1]:
        warn_user(
            f"Some classes differ by spaces around them only: {some_of([repr(w) for w in alike])}. "
            "If they are meant to be one, strip the labels."
        )


def _check_cells(labels: Any) -> None:
    """Refuse missing labels, and labels of several kinds."""
    missing = missing_cells(np.fromiter(labels, dtype=object, count=len(labels)))
    if missing.any():
        raise ValueError(
            f"Labels must not be missing: y contains NaN or None in row {int(missing.argmax())}. "
            "Drop such rows, or make missing labels a class of their own."
        )
    types = {type(label) for label in labels}
    if len({_kind(t) for t in types}) > 1:
        raise ValueError(
            "Labels must be of one type: words, numbers or booleans. Got "
            f"{sorted(t.__name__ for t in types)}: turn all of them into words."
        )


def _kind(own: type) -> type:
    """Return the type that stands for all of its kind."""
    if issubclass(own, np.bool_):
        return bool
    return next((kind for kind in (str, bool, Real) if issubclass(own, kind)), own)


def _of_one_type(labels: Array) -> Array:
    """Return labels that are Python objects as an array of booleans, numbers or words."""
    if all(isinstance(label, (bool, np.bool_)) for label in labels):
        return labels.astype(bool)
    if all(is_whole(label) for label in labels):
        try:
            return labels.astype(np.int64)
        except OverflowError:
            figures = len(str(max(labels, key=abs)))
            raise ValueError(
                f"Labels that are whole numbers must lie within 64 bits. Got one of {figures} "
                "figures: turn them into words."
            ) from None
    if all(isinstance(label, Real) for label in labels):
        return labels.astype(float)
    strange = [label for label in labels if not isinstance(label, str)]
    if strange:
        _refuse(strange[0])
    return labels


def _check_whole(labels: Array) -> None:
    """Refuse floats that are no class numbers."""
    if not np.isfinite(labels).all():
        row = int((~np.isfinite(labels)).argmax())
        raise ValueError(
            "Labels must not be missing or infinite: Input y contains NaN or infinity in row "
            f"{row}. Drop such rows."
        )
    broken = labels[labels != np.floor(labels)]
    if len(broken):
        # The first words are scikit-learn's, and a part of its contract.
        raise ValueError(
            "Unknown label type: continuous. Labels that are numbers must be whole. Got "
            f"{broken[0]:g}: use PSiLONRegressor to predict quantities, or turn them into words if "
            "they are classes."
        )
