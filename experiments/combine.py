"""Ways to make one prediction of many members, chosen on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.data import load_table, reported_loss
from psilonnet.scale import cell_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Array = np.ndarray[Any, Any]
ROUNDS = 30  # of the greedy average


@dataclass(frozen=True)
class Members:
    """Outputs of the strengths of a family; each is the average of its folds.

    Attributes
    ----------
    strengths, bounds : ndarray of shape (members,)
    held : ndarray of shape (members, training rows)
        From networks that were not trained on the row.
    judged : ndarray of shape (members, judging rows)
    y, judges_y : ndarray of shape (rows,)
    """

    strengths: Array
    held: Array
    judged: Array
    bounds: Array
    y: Array
    judges_y: Array

    @property
    def count(self) -> int:
        """The number of members."""
        return len(self.strengths)

    def loss(self, task: str, k: int) -> float:
        """Return the mean loss of a member on the judging rows."""
        return mean_loss(task, self.judged[k], self.judges_y)

    def held_loss(self, task: str, k: int) -> float:
        """Return the mean loss of a member on held-out rows."""
        return mean_loss(task, self.held[k], self.y)

    def save(self, path: Path) -> None:
        """Write all arrays; outputs in float32."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        np.savez(path, **{k: v.astype(np.float32) if v.ndim > 1 else v for k, v in arrays.items()})

    @classmethod
    def load(cls, path: Path) -> Members:
        """Read what ``save`` wrote."""
        with np.load(path) as arrays:
            return cls(**{k: np.asarray(arrays[k], dtype=float) for k in arrays.files})


def joined(parts: Sequence[Members]) -> Members:
    """Return the members of several families as one."""
    names = ("strengths", "held", "judged", "bounds")
    together = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    return Members(**together, y=parts[0].y, judges_y=parts[0].judges_y)


def mean_loss(task: str, outputs: Array, y: Array) -> float:
    """Return the mean squared error, or the cross-entropy of logits."""
    if task == "regression":
        return float(np.mean((outputs - y) ** 2))
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -outputs, outputs))))


def best(task: str, members: Members) -> Array:
    """Return all weight on the member with the least held-out loss."""
    losses = [members.held_loss(task, k) for k in range(members.count)]
    return np.eye(members.count)[int(np.argmin(losses))]


def greedy(task: str, members: Members) -> Array:
    """Return the weights of members picked one by one, with repetition.

    Each pick is the one that lowers the held-out loss of the average most; of all lengths of the
    list, the one with the least loss is kept.
    """
    counts = np.zeros(members.count)
    total = np.zeros(members.held.shape[1])
    lists: list[tuple[float, Array]] = []
    for number in range(1, ROUNDS + 1):
        losses = [
            mean_loss(task, (total + outputs) / number, members.y) for outputs in members.held
        ]
        pick = int(np.argmin(losses))
        counts[pick] += 1
        total = total + members.held[pick]
        lists.append((losses[pick], counts / number))
    return min(lists, key=lambda entry: entry[0])[1]


SINGLE = (
    "plain", "clip", "knots 8", "clip, knots 8", "clip, knots 16", "clip, crelu",
    "clip, residual", "clip, narrow", "clip, short", "clip, fast",
)  # fmt: skip
RECIPES: dict[str, tuple[tuple[str, ...], Callable[[str, Members], Array]]] = {
    **{f"{family}: best": ((family,), best) for family in SINGLE},
    **{f"{family}: greedy": ((family,), greedy) for family in SINGLE},
    "plain + clip: greedy": (("plain", "clip"), greedy),
    "plain + knots 8: greedy": (("plain", "knots 8"), greedy),
    "plain + clip, knots 8: greedy": (("plain", "clip, knots 8"), greedy),
    "clip + clip, knots 8: greedy": (("clip", "clip, knots 8"), greedy),
    "plain + clip + both knots: greedy": (("plain", "clip", "knots 8", "clip, knots 8"), greedy),
    "all: best": (SINGLE, best),
    "all: greedy": (SINGLE, greedy),
}


def judge(recipe: str, dataset: str, folder: Path, data: str) -> list[Any]:
    """Return a line of the table: the recipe's loss on the judging rows, bound and members."""
    families, rule = RECIPES[recipe]
    keys = [cell_key({"dataset": dataset, "family": family}) for family in families]
    members = joined([Members.load(folder / f"{key}.npz") for key in keys])
    task = load_table(dataset, data).task
    weights = rule(task, members)
    loss = reported_loss(task, mean_loss(task, weights @ members.judged, members.judges_y))
    bound, used = float(weights @ members.bounds), int((weights > 0).sum())
    return [dataset, recipe, round(loss, 5), round(bound, 4), used]
