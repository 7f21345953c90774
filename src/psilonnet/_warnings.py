"""Warnings that point at the user's own line, however deep in the house they arise."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the line of the caller outside of this package had done so."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("psilonnet."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
