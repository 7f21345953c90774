"""What commands are told: options that several of them have, and the words in them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

FEW_CLASSES = 10
Data = Annotated[Path, typer.Argument(help="A CSV or Parquet file with a row of column names.")]
Model = Annotated[Path, typer.Argument(help="A model file written by 'psilonnet fit'.")]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A CSV or Parquet file; default: the terminal."),
]


class Task(str, Enum):
    """What is predicted."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


Target = Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")]
Kind = Annotated[
    Task,
    typer.Option(
        help="What is predicted. auto: words, or few different whole numbers, are classes."
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; repeat it.")
]
Monotone = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=SIGN",
        help="COLUMN=+1 (must not fall) or COLUMN=-1 (must not rise); repeat it.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Steps of training; fewer are faster. Default: by the number of rows.",
    ),
]


Seed = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=0,
        max=2**32 - 1,
        help="The same seed gives the same model, or models.",
    ),
]


def directions(words: list[str] | None) -> dict[str, int] | None:
    """Return the direction of each column, from words such as ``income=+1``.

    >>> directions(["income=+1", "debt=-1"])
    {'income': 1, 'debt': -1}
    """
    signs = {"1": 1, "+1": 1, "-1": -1}
    found: dict[str, int] = {}
    for word in words or []:
        name, _, sign = word.rpartition("=")
        if not name or sign not in signs:
            raise ValueError(
                "A direction is written as COLUMN=+1 (must not fall) or COLUMN=-1 (must not rise). "
                f"Got {word!r}."
            )
        _check_once(name, found, "--monotone")
        found[name] = signs[sign]
    return found or None


def loss_parameters(loss: str | None, levels: list[float], *, classes: bool) -> dict[str, Any]:
    """Return what --loss and --quantile ask for, as parameters of a regressor."""
    given: dict[str, Any] = {} if loss is None else {"loss": loss}
    if levels:
        given["quantile"] = levels[0] if len(levels) == 1 else tuple(sorted(levels))
    if classes and given:
        raise ValueError(
            "A --loss and a --quantile are for numbers, and this target is classes: add "
            "--task regression, or leave them out."
        )
    return given


def is_classes(y: pl.Series, task: Task) -> bool:
    """Whether a target is classes: it is asked for, or it looks like them.

    So do words, booleans, and few whole numbers.
    """
    if y.dtype.is_temporal():
        raise ValueError(
            f"A target must be numbers or classes. {y.name!r} holds dates or times: turn them "
            f"into numbers, or add --words {y.name} if they are classes."
        )
    if task == Task.classification:
        if y.dtype.is_float() and len(broken := y.filter(y != y.round())):
            raise ValueError(
                f"Classes that are numbers must be whole. {y.name!r} has {broken[0]}: leave out "
                f"--task classification, or add --words {y.name}."
            )
        return True
    if task == Task.regression and y.dtype == pl.String:
        raise ValueError(
            f"A --task regression needs a target of numbers. {y.name!r} holds words, such as "
            f"{y[0]!r}: leave out the --task, or mend the column."
        )
    if task == Task.regression or y.dtype.is_float():
        return False
    return not y.dtype.is_integer() or y.n_unique() <= FEW_CLASSES


def deltas(words: list[str]) -> dict[str, Any]:
    """Return amounts by column from words such as income=500."""
    moves: dict[str, Any] = {}
    for word in words:
        name, sign, amount = word.rpartition("=")
        _check_once(name, moves, "--delta")
        try:
            moves[name] = amount if amount == "any" else float(amount)
        except ValueError:
            sign = ""
        if not sign:
            raise ValueError(
                "A --delta must be column=amount, such as income=500 or, in days, joined=30; or "
                f"column=any for words. Got {word!r}."
            )
    return moves


def _check_once(name: str, found: Mapping[str, Any], option: str) -> None:
    """Refuse a column that an option names twice."""
    if name in found:
        raise ValueError(f"Each column must have one {option}. Column {name!r} has two: drop one.")
