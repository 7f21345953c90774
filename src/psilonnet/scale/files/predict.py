"""A fitted model over all rows of many Parquet files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from psilonnet._files import check_folder, remove_asides
from psilonnet._numbers import is_whole
from psilonnet._warnings import warn_user
from psilonnet.scale.cells import outcomes
from psilonnet.scale.failures import SomeFailedError, warn_far, warn_unknown
from psilonnet.scale.files.blocks import (
    check_apart,
    check_schemas,
    find_files,
    read_sources,
    words_of,
)
from psilonnet.scale.files.runtime import export_model
from psilonnet.scale.files.writer import BlockWriter
from psilonnet.scale.text_columns import text_columns
from psilonnet.tables import LossWarning, TextStyle

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from psilonnet.scale.files.blocks import Block
    from psilonnet.scale.files.runtime import ExportedModel
    from psilonnet.scale.files.writer import BlockNotes

Failures = list[tuple[str, Exception]]


@dataclass(frozen=True)
class PredictedFiles:
    """What a run of :func:`predict_files` leaves.

    Attributes
    ----------
    paths : list of Path
        All outputs, in the order of the files and of their rows.
    rows : int
        Rows in all outputs.
    new_rows : int
        Rows that this run has predicted; the others were there before.
    text : dict from column to {"number", "time"}
        Columns of text that were read as numbers or times.
    """

    paths: list[Path]
    rows: int
    new_rows: int
    text: dict[str, str] = field(default_factory=dict)


class FilesFailedError(SomeFailedError):
    """Some blocks or files could not be predicted; the outputs of all others are written."""

    heading = (
        "Blocks or files that could not be predicted: {count}. All others are written: mend or "
        "remove these files and run the same again, and only what is missing is predicted."
    )


def predict_files(
    model: Any,
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    keep: Sequence[str] = (),
    cluster: str | None = None,
    runtime: str = "numpy",
    block_rows: int = 1_000_000,
    progress: bool = True,
    text: TextStyle | None = None,
) -> PredictedFiles:
    """Predict every row of many Parquet files, and write the predictions to Parquet files.

    The files are cut into blocks of row groups. Each block becomes one file in ``out``, named
    after its file and its number, and is written whole or not at all. Run the same again after a
    stop of any kind, and only the missing blocks are predicted. Memory does not grow with the rows.
    Warnings count the blocks that have rows far outside the range of the training rows, and those
    with columns most of whose words were no levels of fit; only the runtime "numpy" sees either.

    Parameters
    ----------
    model : estimator or path
        A fitted estimator, a file written by ``save``, or a folder written by ``export_numpy``.
    files : path, pattern, folder, or iterable of these
        Such as ``"in/*.parquet"``. They must have the columns of the model; others are ignored.
    out : path
        A folder. On a cluster, all machines must see it and the files under the same paths.
    keep : sequence of str
        Columns to carry over, such as an identifier.
    cluster : str, optional
        ``None`` predicts in this process. ``"local"`` starts Ray on this machine, and any other
        value is the address of a Ray cluster; both need the extra ``ray``.
    runtime : {"numpy", "onnx"}
        ``"numpy"`` computes in float64, as certificates assume. ``"onnx"`` computes in float32,
        which is faster; it needs the extra ``onnx``, here and on the cluster.
    block_rows : int, default=1,000,000
        Rows of a block at most; a row group that has more is a block of its own.
    progress : bool, default=True
        Whether to show a progress bar with the time left.
    text : TextStyle, optional
        How to read text such as ``$1,435.00`` or ``31 Jan 2024`` where the model takes numbers or
        times. Each cell must be clear by itself, or be decided by this. None refuses text.

    Returns
    -------
    PredictedFiles
        The outputs have the columns to keep, ``prediction`` (``quantile 0.1`` and so on, if the
        model predicts several), and for classifiers ``probability of`` each class.

    Raises
    ------
    ValueError
        Before the first row is predicted: if files lack columns or hold other kinds of values, or
        if outputs are there that were made from something else.
    FilesFailedError
        At the end, if files cannot be read or hold infinite numbers, or text that can be read in
        two ways or, mostly, in none.
    OSError
        If the disk refuses an output.
    """
    if isinstance(keep, str):
        raise ValueError(f"The 'keep' must be a list of names, such as [{keep!r}]. Got {keep!r}.")
    if not (is_whole(block_rows) and block_rows >= 1):
        raise ValueError(
            f"The 'block_rows' must be a whole number, at least 1. Got {block_rows!r} instead."
        )
    folder = Path(out).resolve()
    check_folder(folder)
    words = words_of(files)
    found = find_files(words)
    check_apart(words, found.values(), folder, (f"{name}-00000.parquet" for name in found))
    exported = export_model(model, runtime)
    _check_names(exported, keep)
    schemas, blocks, failures = read_sources(found, block_rows)
    check_schemas(schemas, exported.columns, keep, text=text is not None)
    writer = BlockWriter(exported, str(folder), tuple(keep), text or TextStyle())
    missing = [block for block in blocks if not writer.is_done(block)]
    folder.mkdir(parents=True, exist_ok=True)
    failed = _predict_blocks(writer, missing, blocks, cluster, progress)
    if failures or failed:
        raise FilesFailedError([*failures, *failed])
    outputs = [folder / block.output for block in blocks]
    remove_asides(set(outputs))
    writer.warn_others(outputs)
    rows, new_rows = (sum(block.rows for block in part) for part in (blocks, missing))
    texts = [text_columns(schema, exported.columns) for schema in schemas.values()]
    return PredictedFiles(
        outputs, rows, new_rows, {n: kind for found in texts for n, kind in found.items()}
    )


def _predict_blocks(
    writer: BlockWriter,
    missing: list[Block],
    blocks: list[Block],
    cluster: str | None,
    progress: bool,
) -> Failures:
    """Predict the missing blocks, warn of what is in them, and return those that failed."""
    rows = sum(block.rows for block in blocks)
    done = rows - sum(block.rows for block in missing)
    failures: Failures = []
    unread: Counter[str] = Counter()
    said: list[BlockNotes] = []
    with tqdm(total=rows, initial=done, unit="row", unit_scale=True, disable=not progress) as bar:
        for block, notes, error in outcomes(writer, missing, cluster):
            # What is wrong with a file is another error; this is the disk, and more would follow.
            if isinstance(error, OSError):
                raise OSError(
                    f"The output {block.output!r} could not be written to {writer.out!r} "
                    f"({error}). All outputs before it are safe: make room on the disk and run "
                    "the same again."
                ) from error
            if error is None:
                unread.update(notes.unread)
                said.append(notes)
            else:
                failures.append((str(block), error))
            bar.update(block.rows)
    _warn_unread(unread)
    warn_far(sum(notes.far for notes in said), "blocks")
    warn_unknown([notes.unknown for notes in said if notes.unknown], "blocks")
    return failures


def _warn_unread(unread: Counter[str]) -> None:
    if lost := [f"{count} of {name!r}" for name, count in unread.items() if count]:
        warn_user(
            "Some cells of text are neither numbers or dates nor words for missing ones, and count "
            f"as missing: {', '.join(lost)}.",
            LossWarning,
        )


def _check_names(exported: ExportedModel, keep: Sequence[str]) -> None:
    names = [*keep, *(name for name, _ in exported.output_fields)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            "The columns of an output must have different names. Kept or predicted twice: "
            f"{twice}. Leave it out of 'keep', or rename it in the files."
        )
