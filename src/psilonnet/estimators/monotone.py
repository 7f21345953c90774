"""Which columns a model must be monotone in, as users say it and as encoded columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from psilonnet._names import did_you_mean
from psilonnet._numbers import is_real
from psilonnet.tables import BOOLEANS, CategoryCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.tables import Column, TableEncoder

Array = np.ndarray[Any, Any]


def are_signs(value: Any) -> bool:
    """Whether a parameter names directions of columns: by name, or one for each column."""
    if value is None:
        return True
    if isinstance(value, Mapping):
        return all(map(_is_sign, value.values()))
    if isinstance(value, (str, bytes)) or np.ndim(value) != 1:
        return False
    return all(map(_is_sign, value))


def _is_sign(value: Any) -> bool:
    return is_real(value) and value in (-1, 0, 1)


def read_signs(given: Any, names: Sequence[str]) -> Array:
    """Return the direction of each column, -1, 0 or 1.

    Parameters
    ----------
    given : None, mapping from column name to direction, or array-like of shape (columns,)
    names : sequence of str
    """
    signs = np.zeros(len(names), dtype=int)
    if given is None:
        return signs
    if isinstance(given, Mapping):
        unknown = [name for name in given if str(name) not in names]
        if unknown:
            raise ValueError(
                "The keys of 'monotonic_cst' must be columns of the table. These are not: "
                f"{unknown}. The columns are {list(names)}.{did_you_mean(unknown, names)}"
            )
        for name, sign in given.items():
            signs[list(names).index(str(name))] = int(sign)
        return signs
    if len(given) != len(names):
        raise ValueError(
            f"A 'monotonic_cst' without names must have one entry for each of the {len(names)} "
            f"columns. Got {len(given)}: give a dict from column name to -1 or 1 instead."
        )
    return np.asarray(given).astype(int)


def check_columns(signs: Array, columns: Sequence[Column]) -> None:
    """Refuse directions of words: their levels have no order."""
    for sign, column in zip(signs, columns, strict=True):
        if sign and column.kind == "category" and not set(_words(column)) <= set(BOOLEANS):
            example = next(word for word in _words(column) if word not in BOOLEANS)
            raise ValueError(
                "The columns of 'monotonic_cst' must hold numbers, booleans, dates or durations. "
                f"Column {column.name!r} holds words, such as {example!r}, which have no order: "
                "turn them into numbers that have one, or give it 0."
            )


def _words(column: Column) -> list[str]:
    return [word for word in column.values if word is not None]


def check_one_output(outputs: int, what: str, remedy: str) -> None:
    """Refuse directions of several outputs."""
    if outputs > 1:
        raise ValueError(
            "A 'monotonic_cst' is about one output: a prediction of one number, or the probability "
            f"of the second of two classes. Got {what}: {remedy}."
        )


def encoded_signs(signs: Array, encoder: TableEncoder) -> Tensor | None:
    """Return the direction of each encoded column, or None if there is none.

    Only the column that holds the number has it. A missing cell is not compared with numbers, so
    what tells that a cell is missing is free.
    """
    found = torch.zeros(encoder.width, dtype=torch.float64)
    for sign, places, code in zip(signs, encoder.places, encoder.codes, strict=True):
        has_number = code.is_sign if isinstance(code, CategoryCode) else code.scale > 0
        if has_number:
            found[places[0]] = int(sign)
    return found if bool(found.any()) else None
