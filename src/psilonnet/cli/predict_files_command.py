"""The command that predicts every row of many files."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from psilonnet.cli.lines import say
from psilonnet.cli.rows import DayFirst, Decimal, text_style
from psilonnet.cli.stopping import stopped
from psilonnet.tables import TEXT_KINDS


class _Runtime(str, Enum):
    """What computes the predictions."""

    numpy = "numpy"
    onnx = "onnx"


def predict_files(
    model: Annotated[
        Path,
        typer.Argument(help="A model file, or a folder written by export_numpy."),
    ],
    files: Annotated[
        list[str],
        typer.Argument(help="Parquet files, folders or patterns such as 'in/*.parquet'."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder for the predictions.")],
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to carry over, such as an id; repeat it."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="'local', or the address of a Ray cluster."),
    ] = None,
    runtime: Annotated[
        _Runtime, typer.Option(help="numpy: float64, certified; onnx: float32, faster.")
    ] = _Runtime.numpy,
    block_rows: Annotated[
        int, typer.Option(metavar="NUMBER", help="Rows per output file, about.")
    ] = 1_000_000,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Predict every row of many Parquet files; run it again to go on after a stop.

    Example: psilonnet predict-files houses.psilon 'in/*.parquet' --out out/ --keep id
    """
    from psilonnet import scale  # noqa: PLC0415  # so that --help is quick

    try:
        done = scale.predict_files(
            model,
            files,
            out,
            keep=keep or [],
            cluster=cluster,
            runtime=runtime.value,
            block_rows=block_rows,
            progress=sys.stderr.isatty(),  # a log needs no bars
            text=text_style(decimal, day_first),
        )
    except KeyboardInterrupt:
        raise stopped(out) from None
    except scale.FilesFailedError as error:
        raise ValueError(str(error)) from None
    for kind, noun in TEXT_KINDS.items():
        if names := [repr(name) for name, known in done.text.items() if known == kind]:
            say(f"Read as {noun}: {', '.join(names)}.")
    print(
        f"{done.rows:,} rows in {len(done.paths)} files in {out}; {done.new_rows:,} of them are "
        "new."
    )
