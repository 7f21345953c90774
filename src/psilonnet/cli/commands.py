"""Thin commands: read a file, call an estimator, write a file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, cast

import polars as pl
import typer

import psilonnet  # its names load when they are used, so that --help is quick
from psilonnet import deploy  # likewise
from psilonnet.cli.files import (
    check_model_out,
    check_out,
    check_table_out,
    with_target,
    write_table,
)
from psilonnet.cli.options import (
    Data,
    Drop,
    Kind,
    Model,
    Monotone,
    Out,
    Seed,
    Steps,
    Target,
    Task,
    deltas,
    directions,
    is_classes,
    loss_parameters,
)
from psilonnet.cli.predict_files_command import predict_files
from psilonnet.cli.rows import (
    DayFirst,
    Decimal,
    Words,
    read_for,
    read_kept,
    read_training,
    text_style,
)

app = typer.Typer(
    help="Neural networks for small tables that come with a proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose boxes cut off long options in a narrow terminal
)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"psilonnet {psilonnet.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None: ...


SELECTION = "accurate, balanced or provable: how much accuracy may be given up for stronger proofs."

LOSS = "For a target of numbers: squared_error (default), absolute_error, huber, quantile, poisson."


class _Method(str, Enum):
    """How a certificate is computed."""

    auto = "auto"
    global_ = "global"
    local = "local"
    linear = "linear"


class _Format(str, Enum):
    """What a model is exported to."""

    numpy = "numpy"
    onnx = "onnx"


class _Page(str, Enum):
    """What a report is written as."""

    html = "html"
    markdown = "markdown"


@app.command(short_help="Fit a model to a table.")
def fit(
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the model is written.")],
    task: Kind = Task.auto,
    drop: Drop = None,
    seed: Seed = 0,
    max_steps: Steps = None,
    selection: Annotated[str, typer.Option(metavar="NAME", help=SELECTION)] = "balanced",
    prune: Annotated[
        bool, typer.Option(help="Make most weights exactly zero: a smaller, faster model.")
    ] = False,
    loss: Annotated[str | None, typer.Option(metavar="NAME", help=LOSS)] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(
            metavar="LEVEL",
            help="The level for --loss quantile, such as 0.9; repeat it for several.",
        ),
    ] = None,
    monotone: Monotone = None,
    words: Words = None,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Fit a model to a table and write it to a file.

    Example: psilonnet fit houses.csv --target price --out houses.psilon
    """
    style = text_style(decimal, day_first)
    table = read_training(data, style, target=target, task=task, drop=drop, words=words)
    check_model_out(out, data)  # before the fit, not after it
    rows = with_target(table, target, data)
    y = rows[target]
    classes = is_classes(y, task)
    kind = psilonnet.PSiLONClassifier if classes else psilonnet.PSiLONRegressor
    steps = "auto" if max_steps is None else max_steps
    model = kind(random_state=seed, max_steps=steps, selection=selection, prune=prune)
    model.set_params(**loss_parameters(loss, quantile or [], classes=classes))
    model.set_params(monotonic_cst=directions(monotone))
    model.fit(rows.drop(target), y.to_numpy())
    model.save(out)
    said = "classification" if classes else "regression"
    print(f"Fitted {len(rows)} rows ({said}; --task changes that).")
    print(model.summary())
    print(f"Written to {out}.")


@app.command(short_help="Predict the rows of a table.")
def predict(
    model: Model,
    data: Data,
    out: Out = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to carry over, such as an id; repeat it."),
    ] = None,
    proba: Annotated[
        bool, typer.Option(help="Write the probabilities of the classes instead.")
    ] = False,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Predict the rows of a table; columns that the model does not know are ignored.

    Example: psilonnet predict houses.psilon new.csv --keep id --out prices.csv
    """
    check_table_out(out, model, data)  # before the work, not after it
    predictor = deploy.FilePredictor(model)
    table = read_for(predictor.encoder_, data, text_style(decimal, day_first))
    kept = read_kept(data, keep or [])
    if proba:
        shares = predictor.predict_proba(table)
        labels = cast("Any", predictor.classes_).tolist()
        columns = {f"probability of {k}": v for k, v in zip(labels, shares.T, strict=True)}
    else:
        columns = _predicted_columns(predictor.predict(table), predictor.quantiles)
    if both := [name for name in kept.columns if name in columns]:
        raise ValueError(f"Columns to keep must not be called as results are. Got {both}.")
    write_table(pl.DataFrame({**kept.to_dict(), **columns}), out)


@app.command(short_help="Write a model for machines without psilonnet.")
def export(
    model: Model,
    out: Annotated[
        Path,
        typer.Option(
            metavar="PATH", help="Where the model is written: a folder for numpy, a file for onnx."
        ),
    ],
    to: Annotated[
        _Format,
        typer.Option(help="numpy: a folder that needs NumPy only; onnx: a file for ONNX Runtime."),
    ],
) -> None:
    """Write a model for machines without psilonnet.

    Example: psilonnet export houses.psilon --to numpy --out houses_numpy
    """
    check_out(out, model)
    estimator = psilonnet.load(model)
    if to == _Format.numpy:
        estimator.export_numpy(out)
        print(f"Written to {out}: read it there with 'from predictor import Predictor'.")
    else:
        estimator.export_onnx(out)
        print(f"Written to {out}: ONNX Runtime and others read it.")


@app.command(short_help="Prove what errors of its columns can do to a row.")
def certify(
    model: Model,
    data: Data,
    out: Out = None,
    delta: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=AMOUNT",
            help="How far a column may be off, in its own unit, or COLUMN=any; repeat it.",
        ),
    ] = None,
    method: Annotated[
        _Method | None,
        typer.Option(
            help="auto, or one of global, local, linear: each proves more and takes longer."
        ),
    ] = None,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Prove for each row what errors of its columns can do to the prediction.

    A classifier tells the radius, in standard deviations of the columns, within which the class
    stays (certified_radius); with --delta, whether it stays (is_robust). A regressor needs --delta
    and tells the range of its prediction (low, high).

    Example: psilonnet certify loans.psilon new.csv --delta income=500 --delta city=any
    """
    check_table_out(out, model, data)
    estimator = psilonnet.load(model)
    table = read_for(estimator.encoder_, data, text_style(decimal, day_first))
    moves = deltas(delta or [])
    quantiles = _quantiles(estimator)
    columns = _predicted_columns(estimator.predict(table), quantiles)
    chosen = {} if method is None else {"method": method.value}
    if isinstance(estimator, psilonnet.PSiLONClassifier):
        if moves:
            columns["is_robust"] = estimator.is_robust(table, moves, **chosen)
        else:
            columns["certified_radius"] = estimator.certified_radius(table, **chosen)
    elif isinstance(estimator, psilonnet.PSiLONRegressor):
        if not moves:
            raise ValueError("A regressor needs at least one --delta column=amount.")
        low, high = estimator.output_range(table, moves, **chosen)
        for name, ends in (("low", low), ("high", high)):
            columns |= _columns_of(name, ends, quantiles)
    write_table(pl.DataFrame(columns), out)


@app.command(short_help="Write one page about a model.")
def report(
    model: Model,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the page is written, such as card.html.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows that the model has not seen, as CSV or Parquet."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of --data with the truth, for a score."),
    ] = None,
    format: Annotated[  # noqa: A002  # the name of the option
        _Page, typer.Option(help="markdown: a model card for the Hugging Face Hub.")
    ] = _Page.html,
    decimal: Decimal = None,
    day_first: DayFirst = None,
) -> None:
    """Write one page about a model: score, proofs, pictures, settings.

    Example: psilonnet report loans.psilon --data new.csv --target paid --out card.html
    """
    from psilonnet.report import check_page  # noqa: PLC0415

    if target is not None and data is None:
        raise ValueError("A --target needs --data, the file that it is a column of.")
    check_out(out, model, data)
    check_page(out, format.value)
    estimator = psilonnet.load(model)
    rows, y = None, None
    if data is not None:
        style, classes = text_style(decimal, day_first), getattr(estimator, "classes_", None)
        rows = read_for(estimator.encoder_, data, style, target, classes=classes)
        if target is not None:
            rows = with_target(rows, target, data)
            rows, y = rows.select(estimator.encoder_.names), rows[target].to_numpy()
    estimator.report(out, rows, y, title=model.stem, format=format.value)
    print(f"Written to {out}.")


def _quantiles(estimator: Any) -> tuple[float, ...]:
    """Return what a regressor of several quantiles predicts."""
    return estimator.target_.levels if estimator.target_.is_sorted else ()


def _predicted_columns(values: Any, quantiles: tuple[float, ...]) -> dict[str, Any]:
    """Return predictions as columns: one, or one for each target or quantile."""
    return _columns_of("quantile" if quantiles else "prediction", values, quantiles)


def _columns_of(name: str, values: Any, quantiles: tuple[float, ...]) -> dict[str, Any]:
    """Return numbers as a column, or as one for each target or quantile."""
    if values.ndim == 1:
        return {name: values}
    which = [f"{q:g}" for q in quantiles] or range(values.shape[1])
    return {f"{name} {k}": column for k, column in zip(which, values.T, strict=True)}


app.command(short_help="Predict every row of many Parquet files.")(predict_files)
