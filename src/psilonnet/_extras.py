"""Packages that come with an extra: imported when they are needed, asked for by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str | None) -> Any:
    """Return a module that an extra (None: no extra of ours) installs, or say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".", maxsplit=1)[0]
        if error.name is None or error.name.split(".", maxsplit=1)[0] != package:
            raise
        wanted = package if extra is None else f"'psilonnet[{extra}]'"
        raise ModuleNotFoundError(
            f"This needs the package {package!r}, which is not installed. "
            f"Install it with: pip install {wanted}",
            name=package,
        ) from None
