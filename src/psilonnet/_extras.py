"""Packages that come with an extra: imported when they are needed, asked for by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, extra: str) -> Any:
    """Return a module that an extra installs, or say how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".", maxsplit=1)[0]
        if error.name is None or error.name.split(".", maxsplit=1)[0] != package:
            raise
        raise ModuleNotFoundError(
            f"This needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'psilonnet[{extra}]'",
            name=package,
        ) from None
