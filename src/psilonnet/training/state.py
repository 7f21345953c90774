"""The state of a run, as callbacks see it and checkpoints write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch
    from torch import Tensor

    from psilonnet.nn import Network
    from psilonnet.training.adam import Adam
    from psilonnet.training.batches import Rows
    from psilonnet.training.history import History
    from psilonnet.training.losses import Loss
    from psilonnet.training.plan import Plan
    from psilonnet.training.weight_average import WeightAverage


class RunState(Protocol):
    """What a callback may read and change of a :class:`Run`.

    Attributes
    ----------
    name : str
        What is trained.
    net : Network
        The members still in training.
    members : list of int
        Their numbers in the population that the run began with.
    plan : Plan
    step : int
        Steps taken.
    history : History
    train_rows, valid_rows : Rows
        Of the members still in training.
    reg_strength : Tensor of shape (members,)
    loss, penalty : callable
    optimizer : Adam
    weight_average : WeightAverage, or None
    device : torch.device
    all_rows, all_strengths : as given, before members were dropped
    start : Tensor
        Some of the weights that the run began with.
    running_loss : list of float
        The sum of each member's losses since the last evaluation.
    first_loss : list of float
    owed : Tensor of shape (members, hidden layers)
        The shares of the bound that earlier parts of the pruning left over.
    """

    name: str
    net: Network
    members: list[int]
    plan: Plan
    step: int
    history: History
    train_rows: Rows
    valid_rows: Rows | None
    reg_strength: Tensor
    loss: Loss
    penalty: Callable[..., Tensor]
    optimizer: Adam
    weight_average: WeightAverage | None
    device: torch.device
    all_rows: tuple[Rows, Rows | None]
    all_strengths: Tensor
    start: Tensor
    running_loss: list[float]
    first_loss: list[float]
    owed: Tensor

    def mean_loss(self, rows: Rows) -> Tensor:
        """Return the weighted mean loss of each member over rows, of shape (members,)."""

    def averaged_net(self) -> Network:
        """Return a copy of the members, with the average of their weights if one is kept."""

    def end_steps(self) -> None:
        """Leave an ordinary network, which may be changed; the next step begins anew with it."""

    def drop(self, keep: Tensor) -> None:
        """Go on with some of the members, by place or as a mask; the optimiser's state follows."""
