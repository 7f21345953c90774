"""Memory that training frees is kept for the next step, where the C library can be told so.

Each step frees and asks for the same large blocks. The C library of Linux gives such blocks back
to the system and gets them anew, page by page; for a population that can take as long as the
arithmetic.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of options in malloc.h
LARGEST = 2**31 - 1
USUAL = 2**25  # bytes; what the C library itself comes to in a program with large blocks


@cache
def _library() -> Any:
    """Return the C library of this process if it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
        _ = library.gnu_get_libc_version
    except (OSError, TypeError, AttributeError):
        return None
    return library


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory in this process, and give it back at the end."""
    library = _library()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, LARGEST)
    library.mallopt(TRIM_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, USUAL)
        library.mallopt(TRIM_THRESHOLD, 2 * USUAL)
        library.malloc_trim(0)
