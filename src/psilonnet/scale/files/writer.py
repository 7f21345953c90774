"""One block: its rows are read in batches, predicted, and written whole or not at all."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from psilonnet._extras import require
from psilonnet._files import written
from psilonnet._warnings import warn_user
from psilonnet.deploy import Notes
from psilonnet.scale.files.blocks import UnreadableError, block_tables
from psilonnet.scale.files.runtime import open_model
from psilonnet.scale.text_columns import with_text_read
from psilonnet.tables import TextStyle

if TYPE_CHECKING:
    from collections.abc import Collection

    from psilonnet.scale.files.blocks import Block
    from psilonnet.scale.files.runtime import ExportedModel

FACTS = b"psilonnet.predict_files"
CLEAR = asdict(TextStyle())  # of an output for which nothing had to be said about text


class BlockNotes(NamedTuple):
    """What there is to say about a block that was predicted.

    Attributes
    ----------
    unread : dict from column to int
        How many cells could not be read as numbers or times and count as missing.
    far : bool
        Whether some rows lie far outside the range of the training rows.
    unknown : str
        What is said of columns most of whose words are no levels of fit, or nothing.
    """

    unread: dict[str, int]
    far: bool = False
    unknown: str = ""


@dataclass(frozen=True)
class BlockWriter:
    """Predicts blocks and writes them to a folder, in this process or in a worker of a cluster.

    Attributes
    ----------
    model : ExportedModel
    out : str
    keep : tuple of str
        Columns that are carried over.
    text : TextStyle
        How text is read where the model takes numbers or times.
    """

    model: ExportedModel
    out: str
    keep: tuple[str, ...]
    text: TextStyle = field(default_factory=TextStyle)

    def facts(self, block: Block) -> dict[str, Any]:
        """Return what an output must have been made from; it is written into the output."""
        return {
            "model": self.model.digest,
            "keep": list(self.keep),
            "file": [block.source.size, block.source.footer],
            "row_groups": list(block.groups),
            "text": asdict(self.text),
        }

    def is_done(self, block: Block) -> bool:
        """Whether the output is there; one that was made from something else is refused."""
        path = Path(self.out, block.output)
        if not path.exists():
            return False
        facts = _read_facts(path)
        if not facts:
            raise ValueError(
                "An output that is there must be whole, and written by predict_files. "
                f"{str(path)!r} is damaged, or another's: delete it, or write to another folder."
            )
        found, wanted = {"text": CLEAR, **facts}, self.facts(block)
        if found["text"] == CLEAR:  # all of its text can be read in one way only
            wanted["text"] = CLEAR
        if changed := [_WORDS[k] for k in wanted if found.get(k) != wanted[k]]:
            raise ValueError(
                f"The output {str(path)!r} was made with {' and '.join(changed)}. Delete it and "
                f"the other outputs of {block.source.path!r}, or write to another folder."
            )
        return True

    def warn_others(self, outputs: Collection[Path]) -> None:
        """Warn of outputs of files that were not given now: they would be read with these."""
        there = set(Path(self.out).rglob("*.parquet")) - set(outputs)
        if others := sorted(path for path in there if _read_facts(path)):
            warn_user(
                f"{len(others)} outputs in {self.out!r} are of files that were not given now, "
                f"among them {others[0].name!r}, and whoever reads the folder reads them as well. "
                "Delete them, or write to a folder of its own."
            )

    def __call__(self, block: Block) -> BlockNotes:
        """Predict a block and write it, unless its output is there."""
        path = Path(self.out, block.output)
        if path.exists():  # Ray starts a block again if it did not hear that it was done
            return BlockNotes({})
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as aside, aside.open("wb") as file:
            return self._write(block, file)

    def _write(self, block: Block, file: Any) -> BlockNotes:
        pa, pq = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
        runtime = open_model(self.model)
        predicted = pa.schema(self.model.output_fields)
        writer, rows, notes = None, 0, Notes()
        unread: Counter[str] = Counter()
        try:
            for read in block_tables(block, [*dict.fromkeys([*self.model.columns, *self.keep])]):
                kept = read.select(list(self.keep))
                table, readings = with_text_read(read, self.model.columns, self.text)
                unread.update({name: reading.unread for name, reading in readings.items()})
                columns = [*kept.columns, *runtime.predict(table, notes)]
                if writer is None:
                    schema = pa.schema([*kept.schema, *predicted])
                    facts = {FACTS: json.dumps(self.facts(block))}
                    writer = pq.ParquetWriter(file, schema.with_metadata(facts))
                writer.write_table(pa.table(columns, schema=writer.schema))
                rows += len(table)
        finally:
            if writer is not None:
                writer.close()
        if rows != block.rows:
            raise UnreadableError(f"{rows} rows were found where the footer says {block.rows}")
        return BlockNotes(dict(unread), bool(notes.far), notes.unknown())


_WORDS = {
    "model": "another model or runtime",
    "keep": "other columns to keep",
    "file": "another content of the file",
    "row_groups": "another number of rows per block",
    "text": "another decimal sign, or order of days and months",
}


def _read_facts(path: Path) -> dict[str, Any]:
    pq = require("pyarrow.parquet", "parquet")
    try:
        facts = json.loads((pq.read_schema(path).metadata or {})[FACTS])
    except (OSError, ValueError, KeyError):
        return {}
    return facts if isinstance(facts, dict) else {}
