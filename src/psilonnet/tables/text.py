"""Amounts, percentages and dates in text: what a column of words would be as numbers or times.

A cell is read if it can mean one thing only. ``1,435.00`` and ``13/02/2023`` can; ``1,435`` and
``01/02/2023`` can mean two, and then the other cells of the column decide, or the user does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from psilonnet._warnings import warn_user
from psilonnet.tables.canonical import distinct_words
from psilonnet.tables.columns import Column, LossWarning, missing_cells, words_of
from psilonnet.tables.text_cells import Number, read_date, read_number

TextKind = Literal["number", "time"]
Floats = np.ndarray[Any, np.dtype[np.float64]]

MISSING_WORDS = frozenset(
    ["", "na", "n/a", "n.a.", "#n/a", "nan", "nat", "null", "none", "?", "-", "--", "\u2014", "."]
)
CODE_DIGITS = 9  # whole numbers in groups that all have as many digits, at least these, are codes
TEXT_KINDS: dict[str, str] = {"number": "numbers", "time": "dates"}  # and their names


@dataclass(frozen=True)
class TextStyle:
    """What is meant where text can be read in two ways.

    Attributes
    ----------
    decimal : {".", ","}, optional
        The decimal sign: whether ``1,435`` is 1.435 or 1435.
    day_first : bool, optional
        Whether ``01/02/2023`` is the first of February or the second of January.
    """

    decimal: Literal[".", ","] | None = None
    day_first: bool | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ",") or self.day_first not in (None, True, False):
            raise ValueError(
                "The 'decimal' of a TextStyle must be '.', ',' or None, and its 'day_first' True, "
                f"False or None. Got {self.decimal!r} and {self.day_first!r} instead."
            )


class TextError(ValueError):
    """Text that cannot be read as numbers or dates, or not in one way only."""


@dataclass(frozen=True)
class TextReading:
    """A column of text as numbers or times.

    Attributes
    ----------
    values : ndarray of shape (rows,)
        Floats with NaN, or datetime64[ms] with NaT (in UTC where the text names a zone).
    example : str
        A cell that was read, the one that says most about the way it was read.
    unread : int
        Cells that are neither read nor words for a missing one, and count as missing.
    unread_example : str
        One of them.
    is_whole : bool
        Whether there are only digits.
    """

    values: np.ndarray[Any, Any]
    example: str
    unread: int
    unread_example: str
    is_whole: bool


class TextCells:
    """The cells of a column of words, and what they would be as numbers or dates.

    Percentages are read as they are written: ``45%`` is 45. Plain digits with leading zeros are
    codes and no numbers; years have four digits.

    Parameters
    ----------
    column : Column
        Of kind "category".

    Examples
    --------
    >>> from psilonnet.tables import Column
    >>> cells = TextCells(Column("a", "category", np.array(["$1,435.00", "$7.50", None])))
    >>> cells.kind()
    'number'
    >>> cells.read("number", TextStyle()).values
    array([1435. ,    7.5,     nan])
    """

    def __init__(self, column: Column) -> None:
        self.name = column.name
        self.rows = len(column.values)
        self.there = np.flatnonzero([value is not None for value in column.values])
        self.words, self.place = distinct_words(column.values[self.there])
        counts = np.bincount(self.place, minlength=len(self.words))
        missing = [word.strip().lower() in MISSING_WORDS for word in self.words]
        self.counts = np.where(missing, 0, counts)  # of the rows that hold each word

    def kind(self, *, untyped: bool = False) -> TextKind | None:
        """Return what most cells are: "number" for amounts and percentages, "time", or None.

        Cells of digits only are no sign of numbers, since many codes and levels look like that.
        They are read among others that are, and all alone if the table has no types.

        Parameters
        ----------
        untyped : bool
            Whether the table comes from a file without types, where digits alone are numbers.
        """
        half = self.counts.sum() / 2
        if self.counts[self._readable("time")].sum() > half:
            return "time"
        if self._looks_like_codes():
            return None
        readable = self._readable("number")
        signs = readable & ~self._digits()
        everything = half > 0 and self.counts[~readable].sum() == 0
        if self.counts[signs].sum() > half or (everything and (untyped or signs.any())):
            return "number"
        return None

    def is_marked(self, kind: TextKind) -> bool:
        """Whether some cell is written for people.

        Numbers are if they have a unit, groups or a comma, dates if the year does not come first.
        """
        if kind == "number":
            return any(number is not None and number.form.is_marked for number in self._numbers)
        dates = zip(self.words, self._dates, strict=True)
        return any(d is not None and not word.strip()[:4].isdigit() for word, d in dates)

    def example(self, kind: TextKind) -> str:
        """Return a readable cell, one that can be read in one way only if there is one."""
        first, second = self._readings(kind)
        weight = self.counts * self._readable(kind)
        one_way = np.isnan(first) | np.isnan(second)
        clear = weight * one_way * [_is_more_than_digits(word) for word in self.words]
        best = clear if clear.any() else weight
        return self.words[int(best.argmax())] if best.any() else ""

    def read(self, kind: TextKind, style: TextStyle, *, alone: bool = False) -> TextReading:
        """Return the column as numbers or times.

        Parameters
        ----------
        kind : {"number", "time"}
        style : TextStyle
            What decides about cells that can be read in two ways. Where it is None, the other
            cells of the column do.
        alone : bool
            Whether each cell must be clear without the others, so that any part of the column is
            read as the whole is.

        Raises
        ------
        TextError
            If most cells cannot be read, if nothing decides how, or if the units differ.
        """
        readable = self._readable(kind)
        unread = self.counts * ~readable
        if unread.sum() > self.counts.sum() / 2:
            raise TextError(
                f"Most cells of column {self.name!r} must be readable as {TEXT_KINDS[kind]}. Got "
                f"{self.words[int(unread.argmax())]!r} and others: leave them empty if they are "
                "missing, or check the column."
            )
        if kind == "number":
            self._check_units()
        values = self._settled(kind, style, alone)
        cells = np.full(self.rows, np.nan)
        cells[self.there] = values[self.place]
        return TextReading(
            values=cells if kind == "number" else cells.astype("datetime64[ms]"),
            example=self.example(kind),
            unread=int(unread.sum()),
            unread_example=self.words[int(unread.argmax())] if unread.any() else "",
            is_whole=kind == "number" and bool((self._digits() | (self.counts == 0)).all()),
        )

    @cached_property
    def _numbers(self) -> list[Number | None]:
        return [read_number(w) if n else None for w, n in zip(self.words, self.counts, strict=True)]

    @cached_property
    def _dates(self) -> list[tuple[float, float] | None]:
        return [read_date(w) if n else None for w, n in zip(self.words, self.counts, strict=True)]

    def _readings(self, kind: TextKind) -> tuple[Floats, Floats]:
        """Return both readings of each word: with point and comma, or day and month first."""
        found = self._numbers if kind == "number" else self._dates
        pairs = [(np.nan, np.nan) if cell is None else cell[:2] for cell in found]
        table = np.array(pairs, dtype=float).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def _readable(self, kind: TextKind) -> np.ndarray[Any, np.dtype[np.bool_]]:
        found = self._numbers if kind == "number" else self._dates
        return np.array([cell is not None for cell in found], dtype=bool)

    def _digits(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell which words are nothing but digits."""
        return np.array([n is not None and n.form.is_digits for n in self._numbers], dtype=bool)

    def _settled(self, kind: TextKind, style: TextStyle, alone: bool) -> Floats:
        """Return one reading of each word."""
        first, second = self._readings(kind)
        values = np.where(np.isnan(first), second, first)
        twofold = ~np.isnan(first) & ~np.isnan(second) & (first != second)
        if not twofold.any():
            return values
        takes_first = style.day_first if kind == "time" else _is_point(style.decimal)
        if takes_first is None and not alone:
            says_first = bool((~np.isnan(first) & np.isnan(second)).any())
            says_second = bool((~np.isnan(second) & np.isnan(first)).any())
            takes_first = says_first if says_first != says_second else None
        if takes_first is None:
            k = int(np.flatnonzero(twofold)[0])
            why = "each cell is read by itself" if alone else "the other cells do not decide it"
            raise TextError(self._question(kind, self.words[k], first[k], second[k], why))
        return values if takes_first else np.where(twofold, second, values)

    def _question(self, kind: TextKind, word: str, first: float, second: float, why: str) -> str:
        if kind == "number":
            either = f"{first:.15g} or {second:.15g}"
            remedy = "which sign is decimal, '.' or ',' (--decimal on the command line)"
        else:
            days = [np.datetime64(int(moment), "ms").astype(str)[:10] for moment in (first, second)]
            either = " or ".join(days)
            remedy = "what comes first, day or month (--day-first or --month-first)"
        return (
            f"Text that can be read in two ways is not guessed. In column {self.name!r} {word!r} "
            f"is {either}, and {why}: say {remedy}."
        )

    def _check_units(self) -> None:
        """Refuse amounts in several units; zero is the same in all."""
        pairs = zip(self.words, self._numbers, strict=True)
        units = {n.form.unit: word for word, n in pairs if n is not None and 0 not in n[:2]}
        if len(units) > 1 and "%" not in units:
            units.pop("", None)
        if len(units) > 1:
            raise TextError(
                "The numbers of a column must have one unit. Column "
                f"{self.name!r} holds {' and '.join(map(repr, list(units.values())[:3]))}: turn "
                "them into one."
            )

    def _looks_like_codes(self) -> bool:
        """Whether most are whole numbers in groups, all of as many digits, like phone numbers."""
        digits = np.array([0 if n is None else n.form.digits for n in self._numbers], dtype=int)
        most = self.counts[digits > 0].sum() > self.counts.sum() / 2
        return bool(most) and digits.max() >= CODE_DIGITS and len(set(digits[digits > 0])) == 1


def _is_point(decimal: str | None) -> bool | None:
    return None if decimal is None else decimal == "."


def _is_more_than_digits(word: str) -> bool:
    """Whether a word has other characters than digits."""
    return not word.strip().isdigit()


def read_text(cells: Any, *, decimal: Any = None, day_first: bool | None = None) -> Any:
    """Return text such as ``$1,435.00``, ``45%`` or ``31 Jan 2024`` as numbers or times.

    Parameters
    ----------
    cells : sequence of str
        A column of a table. Empty cells, ``NA``, ``n/a``, ``-``, ``?`` and the like are missing.
    decimal : {".", ","}, optional
        The decimal sign, if no cell decides it.
    day_first : bool, optional
        Whether days come before months, if no cell decides it.

    Returns
    -------
    ndarray of shape (rows,)
        Floats with NaN, or datetime64[ms] with NaT.

    Raises
    ------
    TextError
        If most cells cannot be read, or can be read in two ways and nothing decides.

    Examples
    --------
    >>> read_text(["45%", "7,5%", "n/a"])
    array([45. ,  7.5,  nan])
    >>> read_text(["01/02/2023", "13/02/2023"])
    array(['2023-02-01T00:00:00.000', '2023-02-13T00:00:00.000'],
          dtype='datetime64[ms]')
    """
    objects = np.empty(len(cells), dtype=object)
    objects[:] = list(cells)
    name = str(getattr(cells, "name", None) or "text")
    text = TextCells(Column(name, "category", words_of(objects, missing_cells(objects))))
    reading = text.read(text.kind(untyped=True) or "number", TextStyle(decimal, day_first))
    if reading.unread:
        warn_user(
            f"{reading.unread} cells, such as {reading.unread_example!r}, cannot be read like the "
            "others and count as missing.",
            LossWarning,
        )
    return reading.values
