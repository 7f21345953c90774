"""What a run records: one line per evaluation, one column per member."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

Column = Literal["train_loss", "valid_loss", "penalty"]
COLUMNS: tuple[Column, ...] = get_args(Column)


@dataclass(frozen=True)
class Divergence:
    """A member that was lost: its number, and step, loss and penalty when it was noticed."""

    member: int
    step: int
    loss: float
    penalty: float


class DivergedError(ArithmeticError):
    """All members of a run were lost."""

    def __init__(
        self, lost: list[Divergence], what: str = "No member has a finite loss on the held-out rows"
    ) -> None:
        if lost:
            first = lost[0]
            what = (
                f"All {len(lost)} members diverged, the first at step {first.step} with loss "
                f"{first.loss:.3g} and penalty {first.penalty:.3g}"
            )
        super().__init__(
            f"{what}. Lower the learning rate, scale the columns and the target, and look for "
            "extreme values in them."
        )


@dataclass
class History:
    """The evaluations of a run.

    Attributes
    ----------
    step, learning_rate, prune_mix : list of one number per evaluation
    train_loss, valid_loss, penalty : Tensor of shape (evaluations, members)
        NaN for members that were no longer in training. The training loss is the mean over the
        steps since the evaluation before.
    diverged : list of Divergence
    row_norms : list of float
        The mean row norm of each layer's directions when the pruning stage began.
    """

    members: int
    step: list[int] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    prune_mix: list[float] = field(default_factory=list)
    # Plain numbers: small tensors that stay, allocated between large ones that go, would leave
    # holes in the heap at every evaluation.
    lines: dict[Column, list[list[float]]] = field(
        default_factory=lambda: {name: [] for name in COLUMNS}
    )
    diverged: list[Divergence] = field(default_factory=list)
    row_norms: list[float] = field(default_factory=list)

    def add(self, members: list[int], **columns: list[float]) -> None:
        """Append one evaluation of the members still in training."""
        for name in COLUMNS:
            line = [math.nan] * self.members
            for member, value in zip(members, columns[name], strict=True):
                line[member] = value
            self.lines[name].append(line)

    @property
    def train_loss(self) -> Tensor:
        """The mean loss of the steps since the evaluation before."""
        return self.column("train_loss")

    @property
    def valid_loss(self) -> Tensor:
        """The loss on the held-out rows."""
        return self.column("valid_loss")

    @property
    def penalty(self) -> Tensor:
        """What the regularisation penalises."""
        return self.column("penalty")

    def column(self, name: Column) -> Tensor:
        """Return a column by its name, of shape (evaluations, members)."""
        return torch.tensor(self.lines[name], dtype=torch.float64).reshape(-1, self.members)

    def last(self, name: Column) -> Tensor:
        """Return a column at each member's last evaluation, finite or not."""
        evaluated = ~self.train_loss.isnan()  # a member in training has a training loss
        line = evaluated.long().cumsum(dim=0).argmax(dim=0, keepdim=True)
        return self.column(name).gather(0, line).squeeze(0)
