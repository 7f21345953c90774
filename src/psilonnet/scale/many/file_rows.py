"""The rows of Parquet files, dealt to shards on disk: memory does not grow with the rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from psilonnet._extras import require
from psilonnet._files import written
from psilonnet.scale.files.blocks import (
    UnreadableError,
    block_tables,
    list_files,
    read_sources,
)
from psilonnet.scale.many.keys import common_type, key_column, key_numbers
from psilonnet.scale.many.sample import Sample, Tally
from psilonnet.scale.many.shards import shard_count
from psilonnet.scale.many.spill import Spill

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from psilonnet.scale.files.blocks import Block, Source
    from psilonnet.scale.many.folder import ModelFolder
    from psilonnet.scale.many.spill import Batch

MOST_ROWS = 100_000  # of a group, unless the caller says otherwise
BLOCK_ROWS = 250_000  # that are read without a word in between, unless a row group has more
STRETCH_ROWS = 1_000_000  # that a kill costs at most, unless there are
STRETCHES = 256  # of them
VERSION = 1  # of the files in work


@dataclass(frozen=True)
class Survey:
    """What a first pass over the keys finds.

    Attributes
    ----------
    kinds : list of str
        The types of the keys in the parts of the files.
    missing : int
        Rows without a key.
    large : dict from int to int
        Rows of the groups of which a sample is taken, by the numbers of their keys.
    """

    kinds: list[str]
    missing: int
    large: dict[int, int]


class FileRows:
    """Parquet files with the same columns, read in batches; see :class:`TableRows`."""

    def __init__(
        self,
        files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        by: str,
        target: str,
        most: int | None,
        seed: int,
    ) -> None:
        self._by, self._seed = by, seed
        self.most = MOST_ROWS if most is None else most
        self.paths = list_files(files)
        schemas, self._blocks, unreadable = read_sources(
            {str(path): path for path in self.paths}, BLOCK_ROWS
        )
        if unreadable:
            path, error = unreadable[0]
            raise UnreadableError(
                f"All files must be readable, or groups would lack rows. {path} is {error}: mend "
                "or remove it."
            ) from error
        coded, plain = _one_schema(schemas, by, target)
        self._coded, self._plain = coded, plain
        self._rows = sum(block.rows for block in self._blocks)
        self.shards = shard_count(self._rows, len(plain.names))

    # What a first pass finds.

    def survey(self, folder: ModelFolder, *, progress: bool) -> None:
        """Read the keys of all rows, unless a run that was stopped has done so."""
        noted = self._noted(folder)
        found = Survey(**noted["survey"]) if noted else self._read_keys(progress)
        pa = require("pyarrow", "parquet")
        known = (pa.null(), pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.date32())
        types = {str(kind): kind for kind in (*known, pa.timestamp("us"))}
        kind = common_type([types[word] for word in found.kinds])
        place = self._plain.get_field_index(self._by)
        self._plain = self._plain.set(place, pa.field(self._by, kind))
        self._found = found
        self.missing = found.missing
        self.large = {int(number): count for number, count in found.large.items()}
        self.rows_in_all = self._rows - found.missing

    def _read_keys(self, progress: bool) -> Survey:
        kinds, missing, tally = set(), 0, Tally()
        with self._bar("keys", progress) as bar:
            for block in self._blocks:
                for table in block_tables(block, [self._by]):
                    keys = key_column(table, self._by)
                    kinds.add(str(keys.type))
                    missing += keys.null_count
                    tally.add(key_numbers(keys.drop_null()))
                    bar.update(len(table))
        return Survey(sorted(kinds), missing, tally.above(self.most))

    @property
    def schema(self) -> Any:
        """The columns, with the type that the keys have in all files together."""
        pa = require("pyarrow", "parquet")
        coded = [
            pa.field(f.name, pa.dictionary(pa.int32(), f.type)) if f.name in self._coded else f
            for f in self._plain
        ]
        return pa.schema(coded)

    def head(self, names: list[str], count: int) -> Any:
        """Return the first rows of some columns."""
        pa = require("pyarrow", "parquet")
        parts: list[Any] = []
        for block in self._blocks:
            for table in block_tables(block, names):
                parts.append(self._cast(table))
                if sum(map(len, parts)) >= count:
                    return pa.concat_tables(parts).slice(0, count)
        return pa.concat_tables(parts)

    # The rows, by way of a spill.

    def begin(self, folder: ModelFolder, *, progress: bool) -> None:
        """Deal the rows, or go on where a run that was stopped has left them."""
        self._spill = Spill(folder.work / "spill", self._plain, self.shards)
        if self._noted(folder) is None:
            folder.clear_work()
            folder.work.mkdir(parents=True)
            with written(folder.work / "plan.json") as aside:
                aside.write_text(json.dumps({**self._facts(), "survey": asdict(self._found)}))
        if all(folder.rows(number).exists() for number in range(self.shards)):
            return
        with self._bar("dealing rows", progress) as bar:
            for number, stretch in enumerate(self._stretches()):
                if not self._spill.path(number).exists():
                    sample = Sample(self.large, self.most, self._seed, self._spill.seen(number - 1))
                    self._spill.write(number, self._batches(stretch), sample)
                bar.update(sum(block.rows for block in stretch))

    def shard(self, number: int) -> Any:
        """Return the rows of a shard, in the order of the files."""
        rows = self._spill.rows(number, len(self._stretches()))
        for name in self._coded:
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, rows.column(name).dictionary_encode())
        return rows

    def end(self) -> None:
        """Let the spill go when all shards are written."""
        self._spill.clear()

    def _stretches(self) -> list[list[Block]]:
        """Return the blocks, in stretches that are dealt at a time."""
        least = max(STRETCH_ROWS, -(-self._rows // STRETCHES))
        stretches: list[list[Block]] = []
        rows = least
        for block in self._blocks:
            if rows >= least:
                stretches.append([])
                rows = 0
            stretches[-1].append(block)
            rows += block.rows
        return stretches

    def _batches(self, stretch: list[Block]) -> Iterator[Batch]:
        for block in stretch:
            for read in block_tables(block, self._plain.names):
                table = self._cast(read)
                keys = table.column(self._by)
                if keys.null_count:
                    table = table.filter(keys.is_valid())
                yield table, key_numbers(table.column(self._by).combine_chunks())

    def _cast(self, table: Any) -> Any:
        """Return rows with the types that all files have together."""
        pa = require("pyarrow", "parquet")
        columns = []
        for name in table.column_names:
            kind, column = self._plain.field(name).type, table.column(name)
            if name == self._by:
                columns.append(key_column(table, name).cast(kind))
            elif column.type == kind:
                columns.append(column)
            else:
                columns.append(column.cast(kind, safe=False))
        return pa.table(columns, names=table.column_names)

    # What a run must have in common with one that was stopped.

    def _facts(self) -> dict[str, Any]:
        sources = dict.fromkeys(block.source for block in self._blocks)
        return {
            "version": VERSION,
            "files": [[s.path, s.size, s.footer] for s in sources],
            "by": self._by,
            "most": self.most,
            "seed": self._seed,
            "shards": self.shards,
        }

    def _noted(self, folder: ModelFolder) -> Mapping[str, Any] | None:
        """Return what a run that was stopped has noted, if it dealt the same rows."""
        try:
            noted = json.loads((folder.work / "plan.json").read_text())
        except (OSError, ValueError):
            return None
        facts = json.loads(json.dumps(self._facts()))
        same = all(noted.get(name) == fact for name, fact in facts.items())
        return noted if same else None

    def _bar(self, what: str, progress: bool) -> Any:
        return tqdm(total=self._rows, desc=what, unit="row", unit_scale=True, disable=not progress)


def _one_schema(schemas: Mapping[Source, Any], by: str, target: str) -> tuple[list[str], Any]:
    """Return which columns are dictionaries, and the schema that all files have together.

    The type of the keys is another question, which only their values can answer.
    """
    pa = require("pyarrow", "parquet")
    (first, model), *others = schemas.items()
    for name in (by, target):
        if name not in model.names:
            raise ValueError(
                f"The file {first.path!r} has no column {name!r}. It has {model.names}."
            )
    if len(set(model.names)) < len(model.names):
        raise ValueError(f"The names of columns must differ. {first.path!r} has {model.names}.")
    for source, schema in others:
        if sorted(schema.names) != sorted(model.names):
            other = sorted(set(schema.names) ^ set(model.names)) or schema.names
            raise ValueError(
                "All files must have the same columns. "
                f"{first.path!r} and {source.path!r} differ in {other}: mend the files."
            )
    coded, fields = [], []
    for name in model.names:
        kinds = {schema.field(name).type for schema in schemas.values()} - {pa.null()}
        if name == by:
            kinds = set()
        if kinds and all(pa.types.is_dictionary(kind) for kind in kinds):
            coded.append(name)
        plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
        fields.append(pa.field(name, _one_type(name, plain)))
    return coded, pa.schema(fields)


def _one_type(name: str, kinds: list[Any]) -> Any:
    """Return the type that holds the cells of all files."""
    pa = require("pyarrow", "parquet")
    if len(kinds) > 1 and all(map(_is_number, kinds)):  # a model reads them in float64
        exact = all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in kinds)
        return pa.int64() if exact else pa.float64()
    one_family = len({(type(kind), getattr(kind, "tz", None)) for kind in kinds}) == 1
    if len(kinds) > 1 and one_family:  # nanoseconds do not reach the year 9999
        if pa.types.is_timestamp(kinds[0]):
            return pa.timestamp("us", kinds[0].tz)
        if pa.types.is_duration(kinds[0]):
            return pa.duration("us")
    schemas = [pa.schema([pa.field(name, kind)]) for kind in kinds or [pa.null()]]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(name).type
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"The files must agree in what column {name!r} holds. It is "
            f"{' here and '.join(sorted(map(str, kinds)))} there: mend the files."
        ) from error


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", "parquet").types
    return bool(types.is_integer(kind) or types.is_floating(kind))
