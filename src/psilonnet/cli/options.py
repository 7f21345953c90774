"""What commands are told: options that several of them have, and the words in them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

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


def is_classes(y: pl.Series) -> bool:
    """Whether a target looks like classes: words, booleans, or few whole numbers."""
    if not y.dtype.is_numeric():
        return not y.dtype.is_temporal()
    return y.dtype.is_integer() and y.n_unique() <= FEW_CLASSES


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
                f"A --delta must be column=amount, such as income=500, or column=any. Got {word!r}."
            )
    return moves


def _check_once(name: str, found: Mapping[str, Any], option: str) -> None:
    """Refuse a column that an option names twice."""
    if name in found:
        raise ValueError(f"Each column must have one {option}. Column {name!r} has two: drop one.")
