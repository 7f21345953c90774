"""Memory that training frees is kept for the next step, where the C library allows it.

Each step frees and asks for the same large blocks. The C library of Linux gives such blocks back
to the system and gets them anew, page by page; for a population that can take as long as the
arithmetic.
"""

from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of options in malloc.h
FIXING = ("mmap_threshold", "trim_threshold", "top_pad", "mmap_max")  # end their adjustment
LARGEST = 2**31 - 1
USUAL = 2**25  # bytes; the most that the C library itself comes to in a program with large blocks


@cache
def _library() -> Any:
    """Return the C library of this process if it is glibc with its default settings, else None."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for name in FIXING:
        if f"glibc.malloc.{name}=" in tunables or f"MALLOC_{name.upper()}_" in os.environ:
            return None
    try:
        library = ctypes.CDLL(None)
        _ = library.gnu_get_libc_version
    except (OSError, TypeError, AttributeError):
        return None
    return library


class _Malloc:
    """The thresholds of malloc, which a process has once for all threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0

    def enter(self) -> None:
        """Raise the thresholds for the first user."""
        with self.lock:
            self.users += 1
            if self.users == 1:
                self._set(LARGEST, LARGEST)

    def leave(self) -> None:
        """Lower them, and give back what is free, after the last."""
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self._set(USUAL, 2 * USUAL)
                _library().malloc_trim(0)

    def _set(self, mmap: int, trim: int) -> None:
        _library().mallopt(MMAP_THRESHOLD, mmap)
        _library().mallopt(TRIM_THRESHOLD, trim)


_MALLOC = _Malloc()


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory in this process, and give it back when the last training has ended.

    The C library does not tell its thresholds, and setting them ends their adjustment for good. It
    would begin at 128 KiB and go up with the blocks that are freed, to 32 MiB for blocks of their
    own and 64 MiB of free memory at the end of the heap. So that is where they stay; at 128 KiB,
    for good, all that comes after a training would be slow. Where the environment fixes them
    (``MALLOC_TRIM_THRESHOLD_`` and its like, ``GLIBC_TUNABLES``), they are left alone.
    """
    if _library() is None:
        yield
        return
    _MALLOC.enter()
    try:
        yield
    finally:
        _MALLOC.leave()
