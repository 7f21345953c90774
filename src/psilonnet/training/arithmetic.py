"""The arithmetic of torch while a network is trained: global settings, restored at the end."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Precision:
    """The precision of matrix products, which torch has once for all threads."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.users: list[tuple[int, str]] = []  # threads that train, and what they need
        self.before = "highest"

    def enter(self, user: tuple[int, str]) -> None:
        """Set the precision once no other thread needs another one."""
        with self.changed:
            self.changed.wait_for(lambda: all(user[0] == t or user[1] == p for t, p in self.users))
            if not self.users:
                self.before = torch.get_float32_matmul_precision()
            self.users.append(user)
            torch.set_float32_matmul_precision(user[1])

    def leave(self, user: tuple[int, str]) -> None:
        """Restore the precision after the last of them."""
        with self.changed:
            self.users.remove(user)
            precision = self.users[-1][1] if self.users else self.before
            torch.set_float32_matmul_precision(precision)
            self.changed.notify_all()


_PRECISION = _Precision()


@contextmanager
def matmul_precision(precision: str) -> Iterator[None]:
    """Multiply with a precision; threads that need different ones take turns."""
    try:
        torch.get_float32_matmul_precision()
    except RuntimeError:  # set through torch.backends: torch then refuses to tell, and it stays
        yield
        return
    user = (threading.get_ident(), precision)
    _PRECISION.enter(user)
    try:
        yield
    finally:
        _PRECISION.leave(user)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Count numbers below 1e-38 as zero: in a collapsed network they cost 20 times the step."""
    before = bool(torch.tensor(2e-38) * 0.1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
