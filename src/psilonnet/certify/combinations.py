"""Which combinations of outputs a proof is about, such as the margin between two classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Combinations:
    """Which combinations of outputs are asked about, for each row.

    Attributes
    ----------
    table : Tensor of shape (kinds, outputs)
    index : Tensor of shape (rows, count)
        Rows of the table.
    """

    table: Tensor
    index: Tensor

    @property
    def expanded(self) -> Tensor:
        """The combinations of each row, of shape (rows, count, outputs)."""
        return self.table[self.index]

    @property
    def opposite(self) -> Combinations:
        """The negative of each."""
        return Combinations(-self.table, self.index)

    def at(self, rows: slice | Tensor) -> Combinations:
        """Return what is asked about some rows."""
        return Combinations(self.table, self.index[rows])


def class_margins(outputs: Tensor, chosen: Tensor | None = None) -> tuple[Tensor, Combinations]:
    """Return a class's margins over the others, and the combinations that they come from.

    One output is the logit of the second of two classes.

    Parameters
    ----------
    outputs : Tensor of shape (rows, outputs)
    chosen : Tensor of shape (rows,), optional
        Class numbers; of each row the class with the largest logit if it is not given.
    """
    n = outputs.shape[1]
    if n == 1:
        chosen = (outputs[:, 0] > 0).long() if chosen is None else chosen
        sign = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
        return outputs * sign[chosen], Combinations(sign, chosen.unsqueeze(1))
    eye = torch.eye(n, dtype=torch.float64)
    table = (eye.unsqueeze(1) - eye.unsqueeze(0)).flatten(0, 1)  # row a n + b is e_a - e_b
    pairs = torch.arange(n * n).reshape(n, n)
    others = torch.stack([torch.cat([row[:a], row[a + 1 :]]) for a, row in enumerate(pairs)])
    chosen = outputs.argmax(dim=-1) if chosen is None else chosen
    largest = outputs.gather(1, chosen.unsqueeze(1))
    index = others[chosen]  # (rows, n - 1)
    return largest - outputs.gather(1, index % n), Combinations(table, index)


def both_ways(rows: int, n: int) -> Combinations:
    """Return every output by itself, and then the negative of each."""
    eye = torch.eye(n, dtype=torch.float64)
    return Combinations(torch.cat((eye, -eye)), torch.arange(2 * n).expand(rows, 2 * n))
