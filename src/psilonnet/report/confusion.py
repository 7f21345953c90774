"""The confusion matrix of a page: which classes are taken for which."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from psilonnet.plot import shortened
from psilonnet.report.html import Html, number, table, tag

Floats = np.ndarray[Any, np.dtype[np.float64]]
MOST_CLASSES = 12  # the rarest of more are put together


class _Group(NamedTuple):
    """A line or a column of the matrix: a class, or several."""

    name: str
    classes: list[int]


def confusion_table(measured: Any) -> Html:
    """Return the rows of each class by what is predicted for them; right ones stand out.

    Parameters
    ----------
    measured : ClassMeasures
    """
    counts = _counts(measured)
    columns = _groups(measured, counts)
    strange = [_Group("unknown to the model", [len(measured.labels)])]
    whole = bool((counts == counts.round()).all())
    lines = []
    for line in columns + (strange if counts[-1].any() else []):
        own = counts[line.classes]
        cells = []
        for column in columns:
            rows = own[:, column.classes].sum()
            said = f"{rows:,.0f}" if whole else number(rows)
            kind = {"class_": "zero"} if rows == 0 else {}
            cells.append(tag("strong" if column is line else "span", said, **kind))
        lines.append((shortened(line.name), _right(own, line), *cells))
    head = ("Truth", "Right", *(shortened(column.name) for column in columns))
    return tag("div", table(head, lines, range(1, len(head))), class_="confusion")


def _counts(measured: Any) -> Floats:
    """Return the whole matrix; its last line is for classes that the model does not know."""
    classes = len(measured.labels)
    counts = np.zeros((classes + 1, classes))
    counts[measured.given, measured.predicted] = measured.weight
    return counts


def _groups(measured: Any, counts: Floats) -> list[_Group]:
    """Return the classes, the rarest of many as one group at the end."""
    classes = len(measured.labels)
    mass = counts[:classes].sum(axis=1) + counts.sum(axis=0)
    most = classes if classes <= MOST_CLASSES else MOST_CLASSES - 1
    kept = sorted(np.argsort(-mass, kind="stable")[:most].tolist())
    rest = sorted(set(range(classes)) - set(kept))
    groups = [_Group(str(measured.labels[k]), [k]) for k in kept]
    return [*groups, _Group(f"{len(rest):,} others", rest)] if rest else groups


def _right(own: Floats, line: _Group) -> str:
    """Return the share of the rows of a line whose class is right."""
    right = sum(own[i, k] for i, k in enumerate(line.classes) if k < own.shape[1])
    return f"{right / own.sum():.0%}" if own.any() else "no rows"
