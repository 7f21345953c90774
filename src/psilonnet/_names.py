"""Names in sentences: one that a user may have mistyped, and the first of many."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FEW = 8  # names that are listed


def did_you_mean(names: Iterable[object], known: Iterable[object]) -> str:
    """Return a question that names what is most like the first name, or nothing.

    >>> did_you_mean(["Bmi"], ["age", "bmi"])
    " Did you mean 'bmi'?"
    """
    lower = {str(name).strip().lower(): str(name) for name in known}
    for name in names:
        if near := get_close_matches(str(name).strip().lower(), lower, 1):
            return f" Did you mean {lower[near[0]]!r}?"
    return ""


def some_of(names: Sequence[object]) -> str:
    """Return the first few names as words, and how many more there are.

    >>> some_of(range(10))
    '0, 1, 2, 3, 4, 5, 6, 7 and 2 more'
    """
    said = ", ".join(map(str, names[:FEW]))
    return said if len(names) <= FEW else f"{said} and {len(names) - FEW:,} more"
