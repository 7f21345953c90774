"""What a fitted model has, whatever it predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from psilonnet.estimators.designs import Design
    from psilonnet.nn import AveragedNet
    from psilonnet.tables import TableEncoder


class FittedModel(Protocol):
    """What is saved of a classifier or regressor."""

    encoder_: TableEncoder
    target_: Any
    net_: AveragedNet
    designs_: list[Design]
    members_: dict[str, list[float]]
    path_: dict[str, list[float]] | None
    history_: dict[str, list[float]]
    held_out_score_: float | None
    measures_: dict[str, Any]
    near_sparsity_: float
    sparsity_: float
    n_rows_: int
    n_iter_: int

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters."""
