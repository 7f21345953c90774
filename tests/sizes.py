"""How much a test does: little in every run, much where PSILONNET_LONG is set, as .ci/long does."""

import os
from typing import TypeVar

Size = TypeVar("Size")


def size(short: Size, *, long: Size) -> Size:
    """Return the size of this run."""
    return long if os.environ.get("PSILONNET_LONG") else short
