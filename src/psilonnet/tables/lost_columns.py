"""What is lost when a table becomes numbers: said once, with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psilonnet._warnings import warn_user
from psilonnet.tables.codes import LEAST, CategoryCode, NumberCode
from psilonnet.tables.columns import LossWarning
from psilonnet.tables.text import TextCells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.tables.codes import Floats
    from psilonnet.tables.columns import Column

Code = NumberCode | CategoryCode

FEWEST = 20  # rows; in fewer, any column may have another value in each
NAMED = 5  # columns that a warning names
SENTENCES = {
    "empty": (
        "A column that has no value in any row is left out: {}. Drop it, or check how it was read."
    ),
    "narrow": (
        "Columns whose numbers differ by less than 1e-13 of their size are taken as constant and "
        "left out: {}. Subtract their least number first."
    ),
    "cut": (
        "Times and durations are cut to milliseconds. In these columns all are equal then, and "
        "they are left out: {}. Turn them into numbers, for instance of microseconds."
    ),
    "strays": (
        "A column that holds a word is read as categories. In these columns most cells are "
        "numbers, whose size and order are lost: {}. Turn the words into missing cells, for "
        "instance with pandas.to_numeric(..., errors='coerce'); if the numbers are mere names, "
        "make the column categorical."
    ),
    "tiny": (
        "Columns whose standard deviation is at most 1e-280 are taken as constant and left out: "
        "{}. Multiply their numbers first."
    ),
    "text": (
        "Columns of text are read as categories. In these columns most cells are amounts, "
        "percentages or dates, whose size and order would be lost: {}. Turn them into numbers or "
        "dates, for instance with psilonnet.tables.read_text; if they are mere names, make the "
        "column categorical."
    ),
    "identifier": (
        "Nothing can be learned from columns that have a different value in almost every row, like "
        "an identifier: {}. Drop them, or turn them into numbers if they hold any."
    ),
    "rare": (
        "In these columns most rows have a rare value, and all rare values of a column count as "
        "one level: {}. Turn them into fewer different values, or into numbers or dates if they "
        "hold any, or drop them."
    ),
}


def warn_losses(columns: Sequence[Column], codes: Sequence[Code], weight: Floats) -> None:
    """Warn of columns that are lost, or of which little is left; once for each reason."""
    found: dict[str, list[str]] = {}
    for column, code in zip(columns, codes, strict=True):
        reason, said = _loss(column, code, weight)
        if reason:
            found.setdefault(reason, []).append(f"{column.name!r}{said}")
    for reason, names in found.items():
        warn_user(SENTENCES[reason].format(listed(names)), LossWarning)


def warn_text(columns: Sequence[Column]) -> None:
    """Warn of columns of text that would be numbers or dates."""
    texts = [(column.name, _as_text(column)) for column in columns if column.kind == "category"]
    if names := [f"{name!r}{said}" for name, said in texts if said]:
        warn_user(SENTENCES["text"].format(listed(names)), LossWarning)


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])


def _loss(column: Column, code: Code, weight: Floats) -> tuple[str, str]:
    """Return why a column is lost, or "", and what there is to say about it."""
    if column.is_empty:
        return "empty", ""
    if isinstance(code, NumberCode):
        return _loss_of_numbers(column, code), ""
    if column.strays:
        return "strays", column.strays
    if said := _as_text(column):
        return "text", said
    present = np.array([value is not None for value in column.values], dtype=bool)
    rows = weight[present].sum()
    if rows >= FEWEST and len(set(column.values[present])) > 0.9 * rows:
        return "identifier", ""
    kept = np.array([value in code.levels for value in column.values], dtype=bool)
    rare = float(weight[present & ~kept].sum() / weight[present].sum())
    return ("rare", f" ({rare:.0%} of the rows)") if rare > 0.5 else ("", "")


def _loss_of_numbers(column: Column, code: NumberCode) -> str:
    if code.scale > 0 or not (column.differs or code.low < code.high):
        return ""
    size = max(abs(code.low), abs(code.high))
    if column.kind == "number" and 1e-13 * size < LEAST:
        return "tiny"
    lost = column.differs or code.high / 2 - code.low / 2 > 1e-15 * size  # more than rounding
    return ("narrow" if column.kind == "number" else "cut") if lost else ""


def _as_text(column: Column) -> str:
    """Return an example of text that would be numbers or dates, or ""."""
    if column.is_declared:
        return ""
    cells = TextCells(column)
    kind = cells.kind()
    if kind == "time" or (kind == "number" and cells.is_marked(kind)):
        return f" (such as {cells.example(kind)!r})"
    return ""
