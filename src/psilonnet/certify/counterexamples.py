"""Rows of a table that refute a proof: found by the attack, and told in the table's own cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from psilonnet.certify.attack import attack
from psilonnet.certify.box import Jump
from psilonnet.certify.perturbation import Perturbation
from psilonnet.tables import DAY, CategoryCode, missing_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from psilonnet.nn import AveragedNet
    from psilonnet.tables import Column, TableEncoder

Array = np.ndarray[Any, Any]
UNSEEN = "a level not seen in training"
BOOLEANS = {"True", "False"}
REACH = 106_751.0  # days
BEYOND = 1e-9  # of a margin; cells are rounded to the inside of what was asked


class Goals(NamedTuple):
    """What would refute a row: one of its combinations of outputs grows by more than enough.

    Attributes
    ----------
    rows : Tensor of shape (rows,)
        Which rows are looked at, by their positions.
    combinations : Tensor of shape (rows, count, outputs)
        The weights of the outputs in each combination.
    enough : Tensor of shape (rows, count)
        How far each combination may grow.
    """

    rows: Tensor
    combinations: Tensor
    enough: Tensor

    def at(self, asked: Tensor) -> Goals:
        """Return the goals of those rows that are asked for."""
        return Goals(self.rows[asked], self.combinations[asked], self.enough[asked])


def farthest_cells(
    net: AveragedNet,
    encoder: TableEncoder,
    columns: Sequence[Column],
    delta: Any,
    goals: Goals,
) -> list[Column]:
    """Return columns whose cells have moved within delta, each row as near its goals as was found.

    Numbers are rounded to the inside of what was asked, times to whole milliseconds, and no time
    is moved beyond what nanoseconds can hold (the years 1678 to 2261). A category
    that may take any level takes one of training, or the words of :data:`UNSEEN`. What is missing
    stays missing. Rows without a goal are returned as they are.

    Parameters
    ----------
    net : AveragedNet
    encoder : TableEncoder
    columns : sequence of Column
    delta : Perturbation, or what is short for one
    goals : Goals
    """
    given, columns = Perturbation.of(delta), encoder.matched(columns)
    x = torch.from_numpy(encoder.encode(columns))
    box = given.box(encoder, columns, x.numpy())
    words = {k: _levels(encoder.codes[k]) for k in given.jumping(encoder)}
    jumps = [Jump(encoder.places[k], encoder.codes[k].encode(words[k])) for k in words]
    enough = goals.enough + BEYOND * (1 + goals.enough.abs())
    box = replace(box.at(goals.rows), jumps=tuple(jumps))
    found = attack(net, x[goals.rows], box, goals.combinations, enough=enough)
    nearest = (found.moves - goals.enough).argmax(dim=1)
    points = x.numpy().copy()
    points[goals.rows.numpy()] = found.points[torch.arange(len(nearest)), nearest].numpy()
    ranges = given.ranges(encoder, columns)
    moved = []
    for k, column in enumerate(columns):
        there, here = points[:, encoder.places[k]], x.numpy()[:, encoder.places[k]]
        stays = (there == here).all(axis=1) | missing_cells(column.values)
        values = column.values
        if k in words:
            values = _words_at(encoder.codes[k], words[k], there)
        elif k in ranges:
            values = _numbers_at(encoder.codes[k], column, there, ranges[k])
        moved.append(replace(column, values=np.where(stays, column.values, values)))
    return moved


def _levels(code: Any) -> Array:
    """Return words for the states that a category can take."""
    levels = [*code.levels] if isinstance(code, CategoryCode) else []
    if not set(levels) <= BOOLEANS:
        levels.append(UNSEEN)
    return np.array(levels, dtype=object)


def _words_at(code: Any, words: Array, points: Array) -> Array:
    """Return the word of each point."""
    state = (points[:, None] == code.encode(words)).all(axis=2).argmax(axis=1)
    return np.asarray(words[state])


def _numbers_at(code: Any, column: Column, points: Array, limits: tuple[Array, Array]) -> Array:
    """Return numbers or times at points, within the limits of their cells."""
    with np.errstate(over="ignore"):
        moved = np.clip(code.center + points[:, 0] * code.scale, *limits)
    if column.kind == "number":
        return np.asarray(moved)
    # Nanoseconds, of which a type may be, reach 292 years from 1970, and a duration as far.
    low = np.minimum(column.values, np.maximum(column.values, 0.0) - REACH)
    high = np.maximum(column.values, np.minimum(column.values, 0.0) + REACH)
    moved = np.clip(moved, low, high)
    shift = np.trunc((moved - column.values) * DAY)  # whole milliseconds, towards the cell
    return np.asarray((np.rint(column.values * DAY) + shift) / DAY)
