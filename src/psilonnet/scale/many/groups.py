"""The groups of a table: which rows have which key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from psilonnet.scale.many.keys import key_name

Integers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Groups:
    """The groups of a table in the order of their first rows.

    Attributes
    ----------
    keys : Arrow array of the different keys
    names : list of str
    order : ndarray of row numbers, group by group
    ends : ndarray
        Where each group ends in ``order``.
    missing : ndarray of the rows without a key
    """

    keys: Any
    names: list[str]
    order: Integers
    ends: Integers
    missing: Integers

    @cached_property
    def sizes(self) -> Integers:
        """The number of rows of each group."""
        return np.diff(self.ends, prepend=0)

    def rows(self, group: int) -> Integers:
        """Return the rows of a group, in the order of the table."""
        return self.order[self.ends[group] - self.sizes[group] : self.ends[group]]


def groups_of(column: Any) -> Groups:
    """Return the groups of an Arrow table by its column of keys, as :func:`key_column` has it."""
    codes = column.dictionary_encode()
    keys, indices = codes.dictionary, codes.indices
    numbers = indices.fill_null(len(keys)).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(keys) + 1))
    names = [key_name(key) for key in keys.to_pylist()]
    known = ends[len(keys) - 1] if len(keys) else 0
    return Groups(keys, names, order[:known], ends[:-1], order[known:])
