"""How one column becomes numbers. Each code knows how steep it is, for certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.tables.canonical import distinct_words
from psilonnet.tables.quantiles import weighted_mean_and_deviation, within_fences

if TYPE_CHECKING:
    from psilonnet.tables.columns import Column

Floats = np.ndarray[Any, np.dtype[np.float64]]

FAR = 1e15  # no number is farther from the center than this many standard deviations
LEAST = 1e-280  # a column that varies by less is constant: its slope would overflow
MOST_LEVELS = 50
BOOLEANS = ("False", "True")  # as columns of booleans are read
RARE = 5.0, 0.01  # a level in fewer rows than this, and in a smaller share of them, is rare


def _require(holds: bool, code: object) -> None:
    if not holds:
        raise ValueError(f"A code of a column must have finite, consistent entries. Got {code!r}.")


@dataclass(frozen=True)
class NumberCode:
    """Numbers and times: ``z = (x - center) / scale``, in standard deviations.

    Center and scale are mean and standard deviation of the training rows; numbers farther than
    three quartile ranges from the quartiles are pulled in to there first. A missing number becomes
    0; if numbers were missing in training, a second column tells, 1 for missing and 0 otherwise.
    """

    center: float
    scale: float  # 0 for a column that is constant
    low: float
    high: float
    has_missing: bool

    def __post_init__(self) -> None:
        numbers = (self.center, self.scale, self.low, self.high)
        _require(all(isinstance(v, (int, float)) and np.isfinite(v) for v in numbers), self)
        _require(self.scale >= 0 and self.low <= self.high, self)
        _require(isinstance(self.has_missing, bool), self)

    @classmethod
    def fit(cls, column: Column, weight: Floats) -> NumberCode:
        """Choose center and scale from the rows that are not missing."""
        present = ~np.isnan(column.values)
        values, weight = column.values[present], weight[present]
        usual = within_fences(values, weight)
        center, scale = weighted_mean_and_deviation(usual, weight)
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        # Rounding leaves a constant column a standard deviation of about 1e-16 of its size.
        if low == high or scale <= max(LEAST, 1e-13 * float(np.abs(usual).max())):
            scale = 0.0
        some_missing = bool(present.any() and not present.all())
        return cls(center, scale, low, high, some_missing)

    @property
    def width(self) -> int:
        """The number of columns that the code makes."""
        return int(self.scale > 0) + int(self.has_missing)

    @property
    def holds_numbers(self) -> list[bool]:
        """Which of these columns hold numbers: not the one that tells what is missing."""
        return [True] * int(self.scale > 0) + [False] * int(self.has_missing)

    @property
    def slope(self) -> float:
        """The most that the encoded column moves when the number moves by one unit."""
        return 1 / self.scale if self.scale > 0 else 0.0

    def encode(self, values: Floats) -> Floats:
        """Map (rows,) to (rows, width)."""
        columns = []
        missing = np.isnan(values)
        if self.scale > 0:
            filled = np.where(missing, self.center, values)
            with np.errstate(over="ignore"):
                z = (filled - self.center) / self.scale
                if np.isinf(z).any():  # that of the halves does not overflow
                    halves = (filled / 2 - self.center / 2) / (self.scale / 2)
                    z = np.where(np.isinf(z), halves, z)
            columns.append(np.clip(z, -FAR, FAR))
        if self.has_missing:
            columns.append(missing.astype(float))
        return np.stack(columns, axis=1) if columns else np.empty((len(values), 0))

    def labels(self, name: str) -> list[str]:
        """Return a name for each column that the code makes."""
        return [name] * int(self.scale > 0) + [f"{name} is missing"] * int(self.has_missing)

    def far_outside(self, values: Floats) -> int:
        """Count the values farther outside the training range than that range is wide."""
        width = self.high - self.low
        with np.errstate(invalid="ignore"):
            outside = (values < self.low - width) | (values > self.high + width)
        return int(outside.sum()) if self.scale > 0 else 0


@dataclass(frozen=True)
class CategoryCode:
    """Categories and booleans: one 0/1 column per level; two levels are one -1/+1 column.

    Rare levels share one column, missing cells have their own. A level that was not seen in
    training counts as rare, or as none of the levels if no level was rare. An ordered code is for
    a boolean with a direction: one -1/+1 column also where cells are missing, which are 0 there,
    and a second column tells.
    """

    levels: tuple[str, ...]
    has_rare: bool
    has_missing: bool
    is_ordered: bool = False

    def __post_init__(self) -> None:
        _require(all(isinstance(level, str) for level in self.levels), self)
        _require(len(set(self.levels)) == len(self.levels), self)
        flags = (self.has_rare, self.has_missing, self.is_ordered)
        _require(all(isinstance(flag, bool) for flag in flags), self)
        _require(not self.is_ordered or (self.levels == BOOLEANS and not self.has_rare), self)

    @classmethod
    def of_boolean(cls, column: Column) -> CategoryCode:
        """Return the ordered code of a column of booleans; of a constant one, a plain code."""
        missing = any(v is None for v in column.values)
        found = {v for v in column.values if v is not None}
        if not found or len(found) + missing < 2:
            return cls(tuple(found), False, missing)
        return cls(BOOLEANS, False, missing, is_ordered=True)

    @classmethod
    def fit(cls, column: Column, weight: Floats) -> CategoryCode:
        """Keep the most frequent levels, in alphabetical order; a weight is a number of rows."""
        present = np.array([v is not None for v in column.values], dtype=bool)
        found, inverse = distinct_words(column.values[present])
        mass = np.bincount(inverse, weights=weight[present], minlength=len(found))
        rows, share = RARE
        least = min(rows, share * weight.sum())
        # Two levels are one column, however rare one of them is.
        frequent = mass >= (0.0 if len(found) <= 2 else least)
        ranked = sorted(np.flatnonzero(frequent), key=lambda k: (-mass[k], found[k]))
        kept = sorted(found[k] for k in ranked[:MOST_LEVELS])
        return cls(tuple(kept), len(kept) < len(found), not present.all())

    @property
    def is_sign(self) -> bool:
        """Whether there are just two levels, encoded as -1 and +1."""
        unmarked = self.is_ordered or not self.has_missing
        return len(self.levels) == 2 and not self.has_rare and unmarked

    @property
    def width(self) -> int:
        """The number of columns that the code makes; a constant column makes none."""
        states = len(self.levels) + self.has_rare + self.has_missing
        return states - 1 if self.is_sign else (0 if states < 2 else states)

    @property
    def holds_numbers(self) -> list[bool]:
        """None of these columns holds numbers."""
        return [False] * self.width

    def encode(self, values: np.ndarray[Any, Any]) -> Floats:
        """Map (rows,) to (rows, width)."""
        number = {level: k for k, level in enumerate(self.levels)}
        rare = len(number) if self.has_rare else -1
        missing = len(number) + self.has_rare if self.has_missing else -1
        code = np.array([missing if v is None else number.get(v, rare) for v in values], dtype=int)
        if self.is_sign:
            sign: Floats = np.where((code == 0) | (code == 1), 2.0 * code - 1.0, 0.0)
            return np.stack([sign, code == missing], axis=1)[:, : self.width]
        hits: Floats = (code[:, None] == np.arange(self.width)).astype(float)
        return hits

    def unseen(self, values: np.ndarray[Any, Any]) -> tuple[int, str]:
        """Count the words that are none of the levels, with an example; rare ones were seen."""
        if self.has_rare or self.width == 0:
            return 0, ""
        levels = set(self.levels)
        words = [value for value in values if value is not None and value not in levels]
        return len(words), words[0] if words else ""

    def labels(self, name: str) -> list[str]:
        """Return a name for each column that the code makes."""
        if self.is_sign:
            return [f"{name} = {self.levels[1]}"] + [f"{name} is missing"] * self.has_missing
        words = [f"{name} = {level}" for level in self.levels]
        words += [f"{name} is rare"] * self.has_rare + [f"{name} is missing"] * self.has_missing
        return words[: self.width]
