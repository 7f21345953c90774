"""Names that a user may have mistyped."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


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
