"""The command line (extra: cli)."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from psilonnet._version import __version__
from psilonnet.cli.lines import broken
from psilonnet.cli.stopping import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING_WRITTEN = "Stopped. Nothing half-done was written."
# A missing module is one of an extra; OSError is a file that cannot be read or written.
MISTAKES = (ValueError, TypeError, OSError, ArithmeticError, MemoryError, ModuleNotFoundError)


def main() -> None:
    """Run the command line; an error of the user's is one sentence and exit code 1."""
    usual = warnings.formatwarning
    warnings.formatwarning = _one_line  # a path of a module tells nothing in a terminal
    try:
        if sys.argv[1:] == ["--version"]:  # without the extra too, and at once
            print(f"psilonnet {__version__}")
            sys.exit()
        _load_commands()()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print(getattr(end, "said", NOTHING_WRITTEN), file=sys.stderr)
        raise
    except KeyboardInterrupt:  # while modules were imported; a command turns it into an exit
        print(NOTHING_WRITTEN, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except MISTAKES as error:
        sys.exit(broken(f"Error: {error}"))
    finally:
        warnings.formatwarning = usual


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return broken(f"Warning: {message}") + "\n"


def _load_commands() -> Callable[[], None]:
    try:
        import_module("psilonnet.cli.many_commands")
        app: Callable[[], None] = import_module("psilonnet.cli.commands").app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "polars"):
            raise
        sys.exit(f"The command line needs {error.name!r}: pip install 'psilonnet[cli]'")
    return app
