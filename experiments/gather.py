"""Results of a study: a file for each cell while it runs, one file of lines when it is finished.

A new result is a file in ``results/cells/STUDY/``, so that runs can be stopped and can share a
study; this folder is not committed. A run that ends with all cells moves them into
``results/cells/STUDY.jsonl``, a line each, which is committed. So does a command, for a study that
was run in parts:

    python -m experiments.gather STUDY [STUDY ...]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet.scale import Results, cell_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CELLS = Path("experiments/results/cells")


class StudyResults(Results):
    """The results of a study, of its folder and of the lines beside it.

    Parameters
    ----------
    folder : path
        Of the single cells. The lines are in the file of the same name with ``.jsonl``. A cell
        that is in both counts as it is in the folder, which is newer.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lines = folder.with_name(f"{folder.name}.jsonl")
        self._gathered = self._read_lines()

    def _read_lines(self) -> dict[str, str]:
        """Return the lines by the names of their cells."""
        text = self.lines.read_text() if self.lines.exists() else ""
        return {cell_key(json.loads(line)["cell"]): line for line in text.splitlines()}

    def __contains__(self, cell: Mapping[str, Any]) -> bool:
        return super().__contains__(cell) or cell_key(cell) in self._gathered

    def __getitem__(self, cell: Mapping[str, Any]) -> Any:
        line = self._gathered.get(cell_key(cell))
        if line is None or super().__contains__(cell):
            return super().__getitem__(cell)
        return json.loads(line)["result"]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the cells that have a result, in the order of their names."""
        for _, line in sorted((self._gathered | self._single()).items()):
            yield json.loads(line)["cell"]

    def _single(self) -> dict[str, str]:
        files = self.folder.glob("*.json")
        return {path.stem: json.dumps(json.loads(path.read_text())) for path in files}

    def gather(self) -> int:
        """Put the single cells into the lines, remove their files, and return their number.

        The lines are in the order of the names of their cells, so the same cells are the same file.
        """
        single = self._single()
        self._gathered = self._read_lines() | single  # another run may have added lines
        if single:
            lines = [f"{line}\n" for _, line in sorted(self._gathered.items())]
            aside = self.lines.with_name(f"{self.lines.name}.{os.getpid()}.partial")
            aside.write_text("".join(lines))
            aside.replace(self.lines)
        for key in single:
            (self.folder / f"{key}.json").unlink()
        return len(single)


def main() -> None:
    """Gather the cells of the studies that are named."""
    parser = argparse.ArgumentParser(description="Gather single cells into one file per study.")
    parser.add_argument("study", nargs="+", help="its name, as in results/cells")
    parser.add_argument("--cells", type=Path, default=CELLS)
    arguments = parser.parse_args()
    for name in arguments.study:
        if not (arguments.cells / name).is_dir():
            parser.error(
                f"A study must have a folder of cells in {arguments.cells}. Got {name!r} instead: "
                "take the name of its module."
            )
        results = StudyResults(arguments.cells / name)
        print(f"{name}: {results.gather()} cells gathered, {len(results)} in all.")


if __name__ == "__main__":
    main()
