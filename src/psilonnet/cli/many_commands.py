"""Commands for many models at once."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

import psilonnet
from psilonnet.cli.commands import app
from psilonnet.cli.options import (
    Data,
    Drop,
    Kind,
    Monotone,
    Seed,
    Steps,
    Target,
    Task,
    directions,
    is_classes,
)
from psilonnet.cli.rows import DayFirst, Decimal, Words, read_training, text_style
from psilonnet.cli.stopping import stopped


@app.command(short_help="Fit one model per group of a table.")
def fit_many(
    data: Data,
    by: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column whose values are the groups.")
    ],
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of the models.")],
    task: Kind = Task.auto,
    drop: Drop = None,
    seed: Seed = 0,
    width: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Neurons in a layer; fewer are faster. Default: by the number of rows.",
        ),
    ] = None,
    max_steps: Steps = None,
    strength: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Strength of the regularisation; default: chosen for each group.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="'local' for all cores through Ray, or a Ray address."
        ),
    ] = None,
    monotone: Monotone = None,
    words: Words = None,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Fit one model per group of a table; the same command again goes on where it stopped.

    Example: psilonnet fit-many sales.csv --by store --target price --out models
    """
    style = text_style(decimal, day_first)
    table = read_training(data, style, target=target, task=task, by=by, drop=drop, words=words)
    classes = is_classes(table[target].drop_nulls(), task)
    kind = psilonnet.PSiLONClassifier if classes else psilonnet.PSiLONRegressor
    strengths: Any = "auto" if strength is None else strength
    steps: Any = "auto" if max_steps is None else max_steps
    neurons: Any = "auto" if width is None else width
    model = kind(random_state=seed, width=neurons, max_steps=steps, reg_strength=strengths)
    model.set_params(monotonic_cst=directions(monotone))
    scale = import_module("psilonnet.scale")  # not before: --help is quick
    try:
        index = scale.fit_many(
            table,
            by=by,
            target=target,
            estimator=model,
            out=out,
            cluster=cluster,
            progress=sys.stderr.isatty(),  # a log needs no bars
        )
    except KeyboardInterrupt:
        raise stopped(out) from None
    except scale.CellsFailedError as failed:
        raise OSError(str(failed.failures[0][1])) from None
    models = pl.read_parquet(index, columns=["path"])["path"].count()
    print(f"Fitted {models} models; the index is {index}.")
    if not models:
        raise typer.Exit(1)
