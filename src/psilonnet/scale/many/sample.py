"""Groups with more rows than a model is to read: a sample of them, the same one every time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.scale.many.hashed import mixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psilonnet.scale.many.hashed import Numbers

STEP = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64: consecutive rows are far apart
CHUNK = 2**20  # lots drawn at a time
Counts = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Sample:
    """Which rows stay, row by row in the order of the table.

    Each row of a large group draws a lot, made of the seed, its group and its place among the rows
    of that group, and those with the lowest lots stay. So nothing but one number per large group
    is kept in memory, and it does not matter in which pieces the rows come.

    Parameters
    ----------
    totals : dict
        How many rows each large group has, by the number of its key.
    most : int
        How many of them stay.
    seed : int
    seen : dict, optional
        How many rows of each group came before.
    """

    def __init__(
        self,
        totals: Mapping[int, int],
        most: int,
        seed: int,
        seen: Mapping[int, int] | None = None,
    ) -> None:
        self.seed = seed
        self.seen = {number: (seen or {}).get(number, 0) for number in totals}
        self._limits = {
            number: self._lowest(number, total, most) for number, total in totals.items()
        }
        self._numbers = np.array(sorted(totals), dtype=np.uint64)

    def stays(self, numbers: Numbers) -> Mask:
        """Tell which of the next rows stay, given the numbers of their keys."""
        stays = np.ones(len(numbers), dtype=bool)
        rows = np.flatnonzero(np.isin(numbers, self._numbers))
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        found, starts = np.unique(numbers[rows], return_index=True)
        for number, own in zip(found.tolist(), np.split(rows, starts[1:]), strict=False):
            lots = self._lots(number, self.seen[number], len(own))
            stays[own] = lots <= np.uint64(self._limits[number])
            self.seen[number] += len(own)
        return stays

    def _lots(self, number: int, start: int, count: int) -> Numbers:
        first = mixed(mixed(np.array([number], dtype=np.uint64)) + np.uint64(self.seed))
        places = np.arange(start, start + count, dtype=np.uint64)
        return mixed(first + places * STEP)  # all of a group are different

    def _lowest(self, number: int, total: int, most: int) -> int:
        """Return the highest lot that stays."""
        lowest = np.empty(0, dtype=np.uint64)
        for start in range(0, total, CHUNK):
            lots = self._lots(number, start, min(CHUNK, total - start))
            lowest = np.concatenate([lowest, lots])
            if len(lowest) > most:
                lowest = np.partition(lowest, most - 1)[:most]
        return int(lowest.max())


class Tally:
    """How many rows there are of each key; it takes 16 bytes per group, and as much in passing."""

    def __init__(self) -> None:
        self._numbers = np.empty(0, dtype=np.uint64)
        self._counts = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Numbers, Counts]] = []

    def add(self, numbers: Numbers) -> None:
        """Count rows by the numbers of their keys."""
        self._waiting.append(np.unique(numbers, return_counts=True))
        if sum(len(part) for part, _ in self._waiting) > max(CHUNK, len(self._numbers)):
            self._gather()

    def above(self, most: int) -> dict[int, int]:
        """Return the counts of the keys with more rows than that."""
        self._gather()
        large = self._counts > most
        return dict(zip(self._numbers[large].tolist(), self._counts[large].tolist(), strict=True))

    def _gather(self) -> None:
        parts = [(self._numbers, self._counts), *self._waiting]
        numbers = np.concatenate([part for part, _ in parts])
        counts = np.concatenate([part for _, part in parts])
        self._waiting = []
        self._numbers, places = np.unique(numbers, return_inverse=True)
        self._counts = np.zeros(len(self._numbers), dtype=np.int64)
        np.add.at(self._counts, places, counts)
