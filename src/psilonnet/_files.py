"""Files that are whole or absent."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

ASIDE = ".part"  # the end of the name of a file that is being written


def check_place(path: Path) -> None:
    """Refuse a place where no file can be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: name a file to write in it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write to: make it.")


def check_folder(path: Path) -> None:
    """Refuse a file where a folder is written."""
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{str(path)!r} is a file: name a folder to write to.")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a file aside to write to; flush it to the disk and move it into place at the end.

    A reader sees the old file or the new one, never a part, whoever else writes the same.
    """
    aside = path.with_name(f".{path.name}.{uuid4().hex[:8]}{ASIDE}")
    try:
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _place_of(aside: Path) -> Path:
    """Return where a file that is being written aside belongs."""
    return aside.with_name(aside.name.removesuffix(ASIDE).rpartition(".")[0].removeprefix("."))


def remove_asides(places: Collection[Path]) -> None:
    """Remove what writers that were killed have left of the files that belong at some places."""
    for folder in {place.parent for place in places}:
        for aside in folder.glob(f".*{ASIDE}"):
            if _place_of(aside) in places:
                aside.unlink(missing_ok=True)
