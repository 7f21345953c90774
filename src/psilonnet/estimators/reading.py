"""What users hand over, checked as scikit-learn does and in our words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, _num_samples

from psilonnet.tables import distinct_words, missing_cells, unmasked, word_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psilonnet.tables import Column

Array = np.ndarray[Any, Any]


def as_table(X: Any, owner: str) -> Any:
    """Return a data frame as it is, without narwhals, and all else as a two-dimensional array."""
    X = nw.to_native(X, pass_through=True)
    if sparse.issparse(X):
        raise TypeError(
            "Sparse input is not supported, because a bound per column needs dense columns. "
            f"Got a sparse matrix of shape {X.shape}: use X.toarray()."
        )
    if hasattr(type(X), "collect"):
        raise TypeError(
            f"The table must be in memory. Got a lazy {type(X).__name__}: call its collect()."
        )
    if nw.dependencies.is_into_dataframe(X):
        _check_frame(X)
        return X
    return _as_array(X, owner)


def _check_frame(X: Any) -> None:
    # Of the type: a pandas frame has its columns as attributes, whatever they are called.
    names = [str(n) for n in (X.column_names if hasattr(type(X), "column_names") else X.columns)]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(
            f"Column names must be unique. These occur more than once: {twice}. Rename them."
        )
    if len(names) == 0 or _num_samples(X) == 0:
        raise ValueError(
            f"Found array with {_num_samples(X)} sample(s) and {len(names)} feature(s) (shape="
            f"({_num_samples(X)}, {len(names)})) while a minimum of 1 is required."
        )


def _as_array(X: Any, owner: str) -> Array:
    """Return a two-dimensional array; cells of lists keep their own types."""
    X = unmasked(X)
    if isinstance(X, (list, tuple)):
        lengths = {len(row) for row in X if isinstance(row, (list, tuple))}
        if len(lengths) > 1:
            raise ValueError(
                "All rows of a table must have the same number of cells. Got rows of "
                f"{min(lengths)} to {max(lengths)} cells: fill the missing cells with None."
            )
        X = np.array(X, dtype=object)
    array: Array = check_array(X, dtype=None, ensure_all_finite=False, estimator=owner)
    return array


def refuse_names(**given: Any) -> None:
    """Refuse the name of a column where the column is meant; its letters would count as rows."""
    for parameter, value in given.items():
        if isinstance(value, str):
            raise ValueError(
                f"The {parameter!r} of a fit must have one entry for each row. Got the word "
                f"{value!r}: if it names a column, give the column, such as table[{value!r}]."
            )


def check_weights(sample_weight: Any, n: int) -> Array:
    """Return one weight per row; all are one if none are given."""
    given = np.asarray(unmasked(sample_weight))
    cells: Any = () if given.dtype.kind in "fiub" else given.ravel()
    if words := [v for v in cells if isinstance(v, (str, bytes))]:
        raise ValueError(
            "The 'sample_weight' must be numbers. Got words such as "
            f"{str(words[0])!r}: convert them, for instance with astype(float)."
        )
    weight: Array = _check_sample_weight(
        unmasked(sample_weight), np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
    )
    if weight.sum() <= 0:
        raise ValueError(
            "At least one sample weight must be above 0. All of them are 0: no class or value is "
            "left to learn from."
        )
    return weight


def check_groups(groups: Any) -> Array:
    """Return one group label per row; none may be missing."""
    groups = unmasked(groups)
    labels = np.asarray(groups.to_numpy() if hasattr(groups, "to_numpy") else groups)
    cells = labels.astype(object)
    if isinstance(groups, (list, tuple)) and labels.ndim == 1:  # NumPy makes words of missing ones
        cells[:] = list(groups)
    if labels.ndim != 1:
        raise ValueError(
            f"The 'groups' must be one label per row. Got an array of shape {labels.shape}."
        )
    missing = np.isnat(labels) if labels.dtype.kind in "mM" else missing_cells(cells)
    if missing.any():
        raise ValueError(
            f"The 'groups' must not be missing. That of row {int(missing.argmax())} is: give such "
            "rows a group, or each one its own, or drop them."
        )
    return cells if labels.dtype.kind in "US" else labels


def codes_of(values: Array) -> Array:
    """Return the number of each value among the distinct ones; 1 is 1.0, and not "1"."""
    if values.dtype == object:
        return distinct_words(f"{isinstance(v, str):d}{word_of(v)}" for v in values)[1]
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def check_names(columns: Sequence[Column], known: Sequence[str]) -> None:
    """Refuse other names than in fit, or another order, where scikit-learn does not look.

    It looks at names that are words; those of a frame may be numbers or dates. Columns of arrays
    have no names of their own; those of a frame in another order have.
    """
    names = [column.name for column in columns]
    no_names = [f"x{k}" for k in range(len(names))]
    moved = names != list(known) and sorted(names) == sorted(known)
    if moved or (names != list(known) and no_names not in (names, list(known))):
        raise ValueError(
            f"The columns must have the names and the order of fit, {list(known)}. Got {names}."
        )
