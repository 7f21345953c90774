"""Ctrl-C between two steps: a run is never left in the midst of one."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def held_interrupt() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back; the function that is yielded raises it where that is safe.

    A second Ctrl-C is not held back. Outside the main thread, where signals do not arrive, and
    where another handler is installed, nothing changes.
    """
    usual = signal.default_int_handler
    in_charge = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is usual
    )
    pressed = False

    def hold(*_: Any) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, usual)

    def release() -> None:
        if pressed:
            raise KeyboardInterrupt

    if in_charge:
        signal.signal(signal.SIGINT, hold)
    try:
        yield release
    finally:
        if in_charge:
            signal.signal(signal.SIGINT, usual)
