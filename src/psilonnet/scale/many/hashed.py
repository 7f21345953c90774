"""Cells as whole numbers that look drawn by lot, and are the same on every machine."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from psilonnet._extras import require

Numbers = np.ndarray[Any, np.dtype[np.uint64]]


def mixed(numbers: Numbers) -> Numbers:
    """Return other numbers for each, as splitmix64 does: a bit that differs turns half of all.

    Different numbers stay different.
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))


def numbers_of(*words: str) -> Numbers:
    """Return a number for each word."""
    hashed = [hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest() for word in words]
    return np.frombuffer(b"".join(digest[:8] for digest in hashed), dtype="<u8")


def word_numbers(column: Any) -> Numbers:
    """Return a number for each cell of an Arrow array of words; missing ones have their own."""
    pa = require("pyarrow", "parquet")
    if pa.types.is_nested(column.type):  # no model reads it, and the index says so
        column = pa.array([str(cell) for cell in column.to_pylist()])
    codes = column.dictionary_encode()
    words = [f"word {word}" for word in codes.dictionary.to_pylist()]
    places = codes.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    return np.asarray(numbers_of(*words, "missing")[places])
