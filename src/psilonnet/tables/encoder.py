"""A whole table as numbers, with the way back to the user's columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from psilonnet._warnings import warn_user
from psilonnet.tables.codes import CategoryCode, NumberCode
from psilonnet.tables.columns import Column, Kind, LossWarning
from psilonnet.tables.lost_columns import listed, warn_losses

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from psilonnet.tables.codes import Floats


class OutOfRangeWarning(UserWarning):
    """Rows lie far outside the range of the training rows."""


@dataclass(frozen=True)
class TableEncoder:
    """Fitted codes, one per column of the table.

    Attributes
    ----------
    names : tuple of str
    kinds : tuple of {"number", "time", "duration", "category"}
    codes : tuple of NumberCode or CategoryCode
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    codes: tuple[NumberCode | CategoryCode, ...]

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return sum(code.width for code in self.codes)

    @property
    def has_numbers(self) -> bool:
        """Whether some column can move by an amount."""
        return any(isinstance(code, NumberCode) and code.scale > 0 for code in self.codes)

    @cached_property
    def sources(self) -> np.ndarray[Any, np.dtype[np.intp]]:
        """The column of the table that each encoded column comes from."""
        return np.repeat(np.arange(len(self.codes)), [code.width for code in self.codes])

    @cached_property
    def places(self) -> list[np.ndarray[Any, np.dtype[np.intp]]]:
        """The encoded columns of each column of the table."""
        ends = np.cumsum([code.width for code in self.codes])
        return np.split(np.arange(self.width), ends[:-1])

    @cached_property
    def holds_numbers(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which encoded columns hold numbers; all others hold 0 and 1, or -1 and +1."""
        return np.array([holds for code in self.codes for holds in code.holds_numbers], dtype=bool)

    @property
    def labels(self) -> list[str]:
        """A name for each encoded column."""
        pairs = zip(self.names, self.codes, strict=True)
        return [label for name, code in pairs for label in code.labels(name)]

    def encode(self, columns: Sequence[Column]) -> Floats:
        """Return the encoded table of shape (rows, width), in float64."""
        pairs = zip(self.codes, self.matched(columns), strict=True)
        parts = [code.encode(column.values) for code, column in pairs]
        encoded: Floats = np.concatenate(parts, axis=1)
        return encoded

    def warn_far_outside(self, columns: Sequence[Column]) -> None:
        """Warn of numbers far outside those of training, and of columns of words unknown there."""
        far, unknown = [], []
        for name, code, column in zip(self.names, self.codes, self.matched(columns), strict=True):
            if isinstance(code, CategoryCode):
                count, example = code.unseen(column.values)
                if 2 * count > sum(value is not None for value in column.values):
                    unknown.append(f"{name!r} (such as {example!r})")
            elif count := code.far_outside(column.values):
                far.append(f"{name!r} ({count} rows)")
        if far:
            warn_user(
                "Some rows lie farther outside the range of the training rows than that range is "
                f"wide, and predictions for them are guesses. Columns: {listed(far)}.",
                OutOfRangeWarning,
            )
        if unknown:
            warn_user(
                "Most values of these columns were not among the levels of fit, and count as none "
                f"of them: {listed(unknown)}. Check how they are written.",
                LossWarning,
            )

    def matched(self, columns: Sequence[Column]) -> list[Column]:
        """Return columns of the kinds of fit; one that is empty or not read can be of any kind."""
        matched = []
        for name, kind, code, column in zip(
            self.names, self.kinds, self.codes, columns, strict=True
        ):
            if column.kind != kind and code.width > 0 and not column.is_empty:
                raise ValueError(
                    f"Column {name!r} must hold the same kind of values as in fit. It held kind "
                    f"{kind!r}, and holds {column.kind!r} now: convert it first."
                )
            missing: Any = None if kind == "category" else np.nan
            nothing = Column(name, kind, np.full(len(column.values), missing))
            matched.append(column if column.kind == kind else nothing)
        return matched

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data for a file."""
        return {
            "names": list(self.names),
            "kinds": list(self.kinds),
            "codes": [asdict(code) for code in self.codes],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TableEncoder:
        """Return an encoder from plain data."""
        names = data["names"]
        if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
            raise ValueError(f"Names of columns must be unique words. Got {names!r}.")
        codes: list[NumberCode | CategoryCode] = []
        for kind, code in zip(data["kinds"], data["codes"], strict=True):
            if kind == "category":
                codes.append(CategoryCode(**{**code, "levels": tuple(code["levels"])}))
            else:
                codes.append(NumberCode(**code))
        if not set(data["kinds"]) <= set(get_args(Kind)) or len(names) != len(codes):
            raise ValueError(f"Each column must have a kind. Got {data['kinds']!r}.")
        return cls(tuple(names), tuple(data["kinds"]), tuple(codes))


def fit_encoder(
    columns: Sequence[Column], weight: Floats, ordered: Collection[str] = ()
) -> TableEncoder:
    """Choose the codes of a table from rows in canonical form.

    Parameters
    ----------
    columns : sequence of Column
    weight : ndarray of shape (rows,)
        How many rows of the table each of them stands for.
    ordered : collection of column names
        Columns of booleans that must be one number each.
    """
    codes: list[NumberCode | CategoryCode] = []
    for column in columns:
        if column.kind != "category":
            codes.append(NumberCode.fit(column, weight))
        elif column.name in ordered:
            codes.append(CategoryCode.of_boolean(column))
        else:
            codes.append(CategoryCode.fit(column, weight))
    warn_losses(columns, codes, weight)
    names, kinds = tuple(c.name for c in columns), tuple(c.kind for c in columns)
    return TableEncoder(names, kinds, tuple(codes))
