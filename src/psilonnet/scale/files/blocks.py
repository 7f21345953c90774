"""Parquet files cut into blocks of rows, and what must hold of the files."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet._extras import require
from psilonnet.scale.failures import first_line
from psilonnet.scale.text_columns import text_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

BATCH = 131_072  # rows in memory at a time, and of a row group that is written
BUFFER = 1 << 20  # bytes of a column read at a time
READERS = 16  # footers read at a time: on a network disk each takes a round trip


class UnreadableError(ValueError):
    """A Parquet file, or a part of it, that cannot be read."""


@dataclass(frozen=True)
class Source:
    """A Parquet file.

    Attributes
    ----------
    path : str
        Where it is, in full, because a worker may run in another folder.
    name : str
        What its outputs are called: the path below the folder asked for, without its ending.
    size : int
    footer : str
        A checksum of the end of the file, where the places, sizes and ranges of its columns are.
    """

    path: str
    name: str
    size: int
    footer: str


@dataclass(frozen=True)
class Block:
    """Consecutive row groups of a file, predicted and written together.

    Attributes
    ----------
    source : Source
    number : int
    groups : (int, int)
        The first row group, and the one behind the last.
    first_row, rows : int
    """

    source: Source
    number: int
    groups: tuple[int, int]
    first_row: int
    rows: int

    @property
    def output(self) -> str:
        """The name of the output, made of the file's name and the block's number."""
        return f"{self.source.name}-{self.number:05d}.parquet"

    def __str__(self) -> str:
        return f"{self.source.path!r}, rows {self.first_row} to {self.first_row + self.rows - 1}"


def find_files(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return the files by the names of their outputs, in sorted order.

    A pattern such as ``in/*.parquet`` is expanded (``**`` stands for any folders), and a folder
    stands for all Parquet files below it.
    """
    found: dict[str, Path] = {}
    for root, path in _matches(files):
        name = path.relative_to(root).with_suffix("").as_posix()
        if found.setdefault(name, path) != path:
            raise ValueError(
                "The outputs are named after the files, so their names must differ. Got "
                f"{str(found[name])!r} and {str(path)!r}: rename one, or write "
                "their predictions to different folders."
            )
    return dict(sorted(found.items()))


def list_files(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files, each once; those of a pattern or a folder are in sorted order."""
    return list(dict.fromkeys(path for _, path in _matches(files)))


def _matches(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> Iterator[tuple[Path, Path]]:
    """Yield the folder that names are counted from, and a file, for each match."""
    words = words_of(files)
    if not words:
        raise ValueError("There must be at least one file to read. Got none: name files.")
    for word in words:
        matches = list(_expand(Path(word).absolute()))
        if not matches:
            raise FileNotFoundError(f"There is no Parquet file at {str(word)!r}.")
        yield from matches


def words_of(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[str | os.PathLike[str]]:
    """Return paths, patterns and folders as a list of these."""
    return [files] if isinstance(files, (str, os.PathLike)) else list(files)


def check_apart(
    words: Iterable[str | os.PathLike[str]],
    files: Iterable[Path],
    out: Path,
    outputs: Iterable[str],
) -> None:
    """Refuse a folder with files to read in it, or whose outputs a second run would read."""
    inside = [f"{str(path)!r} is" for path in files if out in path.resolve().parents]
    asked = [_asked(Path(word).absolute()) for word in words if not Path(word).is_file()]
    for output in outputs:
        path = out / output
        for root, pattern in asked:
            own = root.resolve()
            if own in path.parents and _fits(path.relative_to(own).parts, pattern.split("/")):
                inside.append(f"'{root / pattern}' would read files")
    if inside:
        raise ValueError(
            "The outputs must go to a folder without files to read, or a second run would read "
            f"its own outputs. {inside[0]} in {str(out)!r}: choose another 'out'."
        )


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern; both are given part by part."""
    if not (parts and pattern):
        return not parts and set(pattern) <= {"**"}
    if pattern[0] == "**":
        return _fits(parts, pattern[1:]) or _fits(parts[1:], pattern)
    return fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _asked(path: Path) -> tuple[Path, str]:
    """Return the folder that a pattern or a folder begins at, and the pattern below it."""
    root = next(folder for folder in (path, *path.parents) if folder.is_dir())
    return root, path.relative_to(root).as_posix() if path != root else "**/*.parquet"


def _expand(path: Path) -> Iterator[tuple[Path, Path]]:
    """Do so for one path, pattern or folder."""
    if path.is_file():
        yield path.parent, path
        return
    root, pattern = _asked(path)
    for match in sorted(root.glob(pattern)):
        if match.is_file() and not match.name.startswith("."):
            yield root, match


def read_sources(
    files: Mapping[str, Path], block_rows: int
) -> tuple[dict[Source, Any], list[Block], list[tuple[str, Exception]]]:
    """Read the footers of all files.

    Returns
    -------
    schemas : dict from Source to Arrow schema
    blocks : list of Block
    unreadable : list of (path, reason)
    """
    schemas: dict[Source, Any] = {}
    blocks: list[Block] = []
    unreadable: list[tuple[str, Exception]] = []
    with ThreadPoolExecutor(READERS) as pool:
        for path, read in zip(files.values(), pool.map(_try_read, files.items()), strict=True):
            if isinstance(read, Exception):
                unreadable.append((repr(str(path)), read))
                continue
            source, schema, groups = read
            schemas[source] = schema
            blocks += _cut(source, groups, block_rows)
    return schemas, blocks, unreadable


def _try_read(named: tuple[str, Path]) -> tuple[Source, Any, list[int]] | UnreadableError:
    name, path = named
    pq = require("pyarrow.parquet", "parquet")
    try:
        with pq.ParquetFile(path) as file:
            facts = file.metadata
            groups = [facts.row_group(k).num_rows for k in range(facts.num_row_groups)]
            source = Source(str(path), name, *_fingerprint(path))
            return source, file.schema_arrow, groups
    except (OSError, ValueError) as error:  # Arrow's own errors are among these
        return UnreadableError(f"not a readable Parquet file ({first_line(error)})")


def _fingerprint(path: str | os.PathLike[str]) -> tuple[int, str]:
    """Return the size of a Parquet file and a checksum of its footer."""
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(-8, os.SEEK_END)  # the length of the footer, and four letters
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, os.SEEK_END)
        return size, hashlib.sha256(file.read()).hexdigest()[:32]


def _cut(source: Source, groups: Sequence[int], most: int) -> Iterator[Block]:
    """Yield blocks of at most so many rows, or of one row group that has more."""
    number, first, first_row, rows = 0, 0, 0, 0
    for k, size in enumerate(groups):
        if rows and rows + size > most:
            yield Block(source, number, (first, k), first_row, rows)
            number, first, first_row, rows = number + 1, k, first_row + rows, 0
        rows += size
    if rows:
        yield Block(source, number, (first, len(groups)), first_row, rows)


def block_tables(block: Block, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of a block, a batch at a time."""
    pa, pq = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    try:
        if _fingerprint(block.source.path) != (block.source.size, block.source.footer):
            raise UnreadableError("it has changed since the run began; run again when it is whole")
        with pq.ParquetFile(block.source.path, buffer_size=BUFFER) as file:
            for batch in file.iter_batches(
                BATCH, row_groups=list(range(*block.groups)), columns=columns, use_threads=False
            ):
                yield pa.Table.from_batches([batch]).select(columns)
    except UnreadableError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(f"its rows cannot be read ({first_line(error)})") from error


def check_schemas(
    schemas: Mapping[Source, Any],
    columns: Mapping[str, str | None],
    keep: Sequence[str],
    *,
    text: bool,
) -> None:
    """Refuse files without the columns of the model, or with other kinds of values in them.

    Text may stand for numbers and times if it is to be read. A column without a kind may hold
    anything.
    """
    faults = [
        f"{source.path!r}: {fault}"
        for source, schema in schemas.items()
        for fault in _faults(schema, columns, keep, text)
    ]
    if faults:
        more = [f"and {len(faults) - 5} more"] if len(faults) > 5 else []
        raise ValueError(
            "Every file must have the columns of the model, with the kinds of values of fit, and "
            "those to keep: mend the files. Nothing was predicted. "
            + "; ".join([*faults[:5], *more])
            + "."
        )


def _faults(
    schema: Any, columns: Mapping[str, str | None], keep: Sequence[str], text: bool
) -> Iterator[str]:
    readable = text_columns(schema, columns) if text else {}
    for name in dict.fromkeys([*columns, *keep]):
        count = schema.names.count(name)
        if count != 1:
            yield f"column {name!r} is " + ("missing" if count == 0 else "there more than once")
        elif name in readable or (wanted := columns.get(name)) is None:
            continue
        elif not _holds(schema.field(name).type, wanted):
            yield (
                f"column {name!r} holds {schema.field(name).type}, and the model takes kind "
                f"{wanted!r}"
            )


def _holds(kind: Any, wanted: str) -> bool:
    """Whether a column of an Arrow type is of a kind; one without any value is of every kind."""
    types = require("pyarrow", "parquet").types
    families = {
        "number": ("integer", "floating", "decimal"),
        "duration": ("duration",),
        "time": ("timestamp", "date"),
        "category": ("string", "large_string", "string_view", "boolean", "dictionary"),
    }
    tests = (getattr(types, f"is_{family}", None) for family in ("null", *families[wanted]))
    return any(test(kind) for test in tests if test is not None)  # views are new in Arrow 16
