"""Versions of everything that matters in a bug report."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version

from psilonnet._version import __version__


def _dependencies() -> list[str]:
    """Return the distributions named in our own metadata, extras included, in order."""
    names: list[str] = []
    for requirement in requires("psilonnet") or ():
        name = requirement
        for separator in " ;[<>=!~":
            name = name.split(separator, 1)[0]
        if name not in names:
            names.append(name)
    return names


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions of psilonnet, Python, the system and every dependency installed.

    Examples
    --------
    >>> import psilonnet
    >>> psilonnet.show_versions()  # doctest: +ELLIPSIS
    psilonnet ...
    """
    rows = [
        ("psilonnet", __version__),
        ("python", sys.version.split()[0]),
        ("system", platform.platform()),
    ]
    rows += [(name, _installed(name)) for name in _dependencies()]
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows))
