"""A folder of results: one file per cell, named by the cell's content, written once."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from psilonnet._files import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAUSES = (0.1, 1.0, 5.0)  # seconds before a refused write is tried again


def cell_key(cell: Mapping[str, Any]) -> str:
    """Return the name of a cell: its values, for the reader, and a hash of its whole content.

    The order of the entries does not matter.

    >>> cell_key({"seed": 0, "dataset": "higgs"}) == cell_key({"dataset": "higgs", "seed": 0})
    True
    """
    try:
        content = json.dumps(cell, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "A cell must be a dict of numbers, strings, booleans, None, lists and dicts, because "
            f"its content is its name. Got {cell!r} instead ({error})."
        ) from None
    plain = [cell[name] for name in sorted(cell) if isinstance(cell[name], (str, int, float))]
    words = "-".join(re.sub(r"[^\w.]+", "_", str(value), flags=re.ASCII) for value in plain)
    return f"{words[:80]}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


class Results:
    """A folder that maps cells to results.

    Each result is a JSON file of its own, complete or absent: it is written aside, flushed to the
    disk and moved into place. A result that is there is never written again.

    Parameters
    ----------
    folder : path
        Where the files are. It is made if it does not exist.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     results = Results(folder)
    ...     results.write({"n": 3}, {"square": 9})
    ...     ({"n": 3} in results, {"n": 4} in results, results[{"n": 3}])
    (True, False, {'square': 9})
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, cell: Mapping[str, Any]) -> Path:
        """Return the file that holds, or will hold, the result of a cell."""
        return self.folder / f"{cell_key(cell)}.json"

    def __contains__(self, cell: Mapping[str, Any]) -> bool:
        return self.path(cell).exists()

    def __getitem__(self, cell: Mapping[str, Any]) -> Any:
        try:
            return json.loads(self.path(cell).read_text())["result"]
        except FileNotFoundError:
            raise KeyError(f"The cell {cell!r} has no result in {self.folder} yet.") from None

    def __len__(self) -> int:
        return sum(1 for _ in self.folder.glob("*.json"))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the cells that have a result, in the order of their names."""
        for path in sorted(self.folder.glob("*.json")):
            yield json.loads(path.read_text())["cell"]

    def write(self, cell: Mapping[str, Any], result: Any) -> None:
        """Write a result, unless it is there; a write that the disk refuses is tried again."""
        text = json.dumps({"cell": cell, "result": result})
        for pause in (*PAUSES, None):
            refused = _write_once(self.path(cell), text)
            if refused is None:
                return
            if pause is not None:
                said = f"{refused}; writing again in {pause:g} s"
                warnings.warn(said, RuntimeWarning, stacklevel=2)
                sleep(pause)
        raise OSError(
            f"The result of the cell {cell!r} could not be written to {self.folder} in "
            f"{len(PAUSES) + 1} attempts ({refused}). All results before it are safe: make room on "
            "the disk and run the same cells again."
        ) from refused


def _write_once(path: Path, text: str) -> OSError | None:
    """Move a complete file into place, unless one is there; return what the disk refused."""
    if path.exists():
        return None
    try:
        with written(path) as aside:
            aside.write_text(text)
    except OSError as error:
        return error
    return None
