"""The mapped columns that networks share: each map of the columns is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from psilonnet.nn import ColumnMap

if TYPE_CHECKING:
    from torch import Tensor

    from psilonnet.nn import AveragedNet, Part


@dataclass(frozen=True)
class View:
    """Some encoded columns behind one map.

    Attributes
    ----------
    columns : ColumnMap
        Of the inputs.
    inputs : Tensor of shape (in,)
        Which of the encoded columns are seen, in their order.
    """

    columns: ColumnMap
    inputs: Tensor

    def places(self, part: Part) -> Tensor:
        """Return where the columns that a part reads are among those of the view."""
        return torch.searchsorted(self.inputs, part.inputs)


def shared_views(net: AveragedNet) -> tuple[list[View], list[int]]:
    """Return the distinct views of the parts of a net, and the number of each part's own.

    Parts whose maps agree wherever both read a column share a view of all columns that either
    reads. What is seen as it is, is a view of all encoded columns.
    """
    views: list[View] = []
    numbers = []
    for part in net.parts:
        own = _view_of(part, net.columns)
        for k, view in enumerate(views):
            if (both := _union(view, own)) is not None:
                views[k] = both
                numbers.append(k)
                break
        else:
            views.append(own)
            numbers.append(len(views) - 1)
    return views, numbers


def _view_of(part: Part, width: int) -> View:
    if not part.columns.bends:
        return View(ColumnMap.identity(width), torch.arange(width))
    return View(part.columns, part.inputs)


def _union(a: View, b: View) -> View | None:
    """Return the view of the columns of both, or None if one column is mapped in two ways."""
    if a.columns.bend != b.columns.bend:
        return None
    if a.columns.bend == "identity":
        return a
    both = torch.cat([a.inputs, b.inputs])
    inputs: Tensor = torch.unique(both)
    place = torch.searchsorted(inputs, both)
    maps = []
    for name in ("bent", "center", "scale"):
        values = torch.cat([getattr(a.columns, name), getattr(b.columns, name)])
        joined = values.new_zeros(len(inputs))
        joined[place] = values
        if not joined[place].equal(values):  # the two disagree: only one of them was kept
            return None
        maps.append(joined)
    return View(ColumnMap(a.columns.bend, *maps), inputs)
