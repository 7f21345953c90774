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


def class_margins(outputs: Tensor) -> tuple[Tensor, Combinations]:
    """Return each row's margins over the other classes, and the combinations they come from.

    One output is the logit of the second of two classes.
    """
    n = outputs.shape[1]
    if n == 1:
        sign = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
        return outputs.abs(), Combinations(sign, (outputs <= 0).long())
    eye = torch.eye(n, dtype=torch.float64)
    table = (eye.unsqueeze(1) - eye.unsqueeze(0)).flatten(0, 1)  # row a n + b is e_a - e_b
    pairs = torch.arange(n * n).reshape(n, n)
    others = torch.stack([torch.cat([row[:a], row[a + 1 :]]) for a, row in enumerate(pairs)])
    chosen = outputs.argmax(dim=-1)
    largest = outputs.gather(1, chosen.unsqueeze(1))
    index = others[chosen]  # (rows, n - 1)
    return largest - outputs.gather(1, index % n), Combinations(table, index)


def each_output(rows: int, n: int) -> Combinations:
    """Return every output by itself."""
    return Combinations(torch.eye(n, dtype=torch.float64), torch.arange(n).expand(rows, n))
