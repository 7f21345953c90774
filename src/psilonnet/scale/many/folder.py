"""A folder of many models: files named by the keys of their groups, and an index of them.

::

    settings.json         what all models have in common
    models/ab/c/*.psilon  256 x 16 folders: a million models are 250 files in each
    index/ab/*.parquet    the lines of one task each, complete or absent
    index.parquet         all lines
    work/                 the rows of groups that are not done yet
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet._extras import require
from psilonnet._files import check_folder, written
from psilonnet.scale.many.keys import key_name

if TYPE_CHECKING:
    from collections.abc import Mapping


class ModelFolder:
    """Where the files of many models are."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).resolve()

    # Where things are.

    def model(self, name: str) -> Path:
        """Return the file of a model by the name of its group."""
        return self.folder / "models" / name[:2] / name[2] / f"{name}.psilon"

    def shard(self, task: str) -> Path:
        """Return the part of the index that a task writes."""
        return self.folder / "index" / task[:2] / f"{task}.parquet"

    @property
    def work(self) -> Path:
        """The folder of what only an unfinished run needs."""
        return self.folder / "work"

    def rows(self, shard: int) -> Path:
        """Return the rows of a shard."""
        return self.work / "shards" / f"{shard:04d}.parquet"

    def single(self, task: str) -> Path:
        """Return the rows of a task that was made of one group of another."""
        return self.work / "single" / task[:2] / f"{task}.parquet"

    @property
    def index(self) -> Path:
        """The file of all lines."""
        return self.folder / "index.parquet"

    # What all models have in common.

    def settings(self) -> dict[str, Any]:
        """Return what all models have in common."""
        path = self.folder / "settings.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{str(self.folder)!r} is not a folder of models: it has no settings.json. "
                "Give the folder that fit_many has written."
            )
        settings: dict[str, Any] = json.loads(path.read_text())
        return settings

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Note the settings, or refuse others than those of the models that are there."""
        path = self.folder / "settings.json"
        if not path.is_file():
            check_folder(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            with written(path) as aside:
                aside.write_text(json.dumps(settings, indent=1))
        there, given = self.settings(), json.loads(json.dumps(settings))
        other = _other(given, there)
        if "parameters" in other:
            pair = given["parameters"], there.get("parameters", {})
            other[other.index("parameters")] = f"parameters ({', '.join(_other(*pair))})"
        if other:
            raise ValueError(
                f"All models of a folder must have the same settings. {str(self.folder)!r} was "
                f"begun with other {', '.join(other)}: use another folder."
            )

    # The index.

    def shards(self) -> list[Path]:
        """Return the parts of the index, in one order on every machine."""
        return sorted(self.folder.glob("index/*/*.parquet"))

    def finished(self) -> dict[str, str]:
        """Return the digests of the rows of the groups in the index, fitted or failed, by name."""
        parquet = require("pyarrow.parquet", "parquet")
        digests: dict[str, str] = {}
        for path in self.shards():
            lines = parquet.read_table(path, columns=["group", "digest"])
            names = map(key_name, lines.column("group").to_pylist())
            digests.update(zip(names, lines.column("digest").to_pylist(), strict=True))
        return digests

    def merge(self) -> Path:
        """Write all lines to one file, each group once; one part at a time is in memory."""
        pa, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
        seen: set[str] = set()
        with written(self.index) as aside:
            writer = None
            for path in self.shards():
                lines = parquet.read_table(path)
                names = [key_name(key) for key in lines.column("group").to_pylist()]
                lines = lines.filter(pa.array([name not in seen for name in names]))
                seen.update(names)
                writer = writer or parquet.ParquetWriter(aside, lines.schema)
                writer.write_table(lines)
            if writer is not None:
                writer.close()
        return self.index

    def failed(self) -> tuple[list[tuple[Any, str]], int]:
        """Return the groups without a model, with the reasons, and how many groups there are."""
        parquet = require("pyarrow.parquet", "parquet")
        lines = parquet.read_table(self.index, columns=["group", "error"])
        failed = lines.filter(lines.column("error").is_valid())
        pairs = zip(*(failed.column(k).to_pylist() for k in (0, 1)), strict=True)
        return list(pairs), len(lines)

    def write_table(self, path: Path, table: Any) -> None:
        """Write a table that is complete or absent."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as aside:
            require("pyarrow.parquet", "parquet").write_table(table, aside)

    def clear_work(self) -> None:
        """Remove what only an unfinished run needs."""
        shutil.rmtree(self.work, ignore_errors=True)


def _other(given: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Return the names of what is not the same."""
    return sorted(name for name in given if given[name] != there.get(name))
