"""How a command ends that was stopped from the keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

INTERRUPTED = 130  # the exit code


class StoppedError(SystemExit):
    """A command that was stopped from the keyboard, and says itself what is written."""

    def __init__(self, said: str) -> None:
        super().__init__(INTERRUPTED)
        self.said = said


def stopped(out: Path) -> StoppedError:
    """Return the end of a command that keeps what is finished."""
    return StoppedError(
        f"Stopped. What is finished is in {out}; the same command goes on from there."
    )
