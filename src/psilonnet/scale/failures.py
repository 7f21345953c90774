"""What is said of many pieces of work: which of them failed, and which are guesses."""

from __future__ import annotations

from typing import Any, ClassVar

from psilonnet._warnings import warn_user
from psilonnet.tables import LossWarning, OutOfRangeWarning

SHOWN = 5


def first_line(error: Exception) -> str:
    """Return the first line of an error, or its type if it says nothing."""
    return str(error).split("\n", maxsplit=1)[0] or type(error).__name__


class SomeFailedError(RuntimeError):
    """Some pieces of work raised an error; all others are done.

    Parameters
    ----------
    failures : list of (piece, exception)
        The pieces that are missing, with the reasons.
    """

    heading: ClassVar[str]

    def __init__(self, failures: list[tuple[Any, Exception]]) -> None:
        self.failures = failures
        lines = [f"  {piece}: {self._reason(error)}" for piece, error in failures[:SHOWN]]
        more = [f"  and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        heading = self.heading.format(count=len(failures))
        super().__init__("\n".join([heading, *lines, *more]))

    def _reason(self, error: Exception) -> str:
        return first_line(error)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failures,)


def warn_failed(failures: list[tuple[Any, str]], total: int) -> None:
    """Warn of groups that have no model, with the first reasons."""
    if failures:
        lines = [f"  {group!r}: {error}" for group, error in failures[:SHOWN]]
        more = [f"  and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
        heading = f"Groups without a model: {len(failures)} of {total}. The index has all reasons."
        warn_user("\n".join([heading, *lines, *more]))


def warn_far(count: int, pieces: str) -> None:
    """Warn of pieces of work with rows far outside the training range."""
    if count:
        warn_user(
            f"In {count} {pieces} some rows lie farther outside the range of the training rows "
            "than that range is wide, and predictions for them are guesses.",
            OutOfRangeWarning,
        )


def warn_unknown(said: list[str], pieces: str) -> None:
    """Warn of pieces of work with words that were no levels of fit, in the words of the first."""
    if said:
        warn_user(f"{said[0]} It is so in {len(said)} {pieces}, of which this is one.", LossWarning)
