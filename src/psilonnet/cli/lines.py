"""What commands say on the error stream, apart from results."""

from __future__ import annotations

import sys
from shutil import get_terminal_size
from textwrap import fill


def say(line: str) -> None:
    """Print a line for the user that is no result."""
    print(broken(line), file=sys.stderr)


def broken(text: str) -> str:
    """Return a text broken between words where a terminal would break it anywhere.

    A log or a pipe has each sentence as one line.
    """
    if not sys.stderr.isatty():
        return text
    width = get_terminal_size().columns
    return "\n".join(
        fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )
