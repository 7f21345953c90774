"""Ways to make one prediction of many members, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.data import load_table, reported_loss
from psilonnet.scale import cell_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Array = np.ndarray[Any, Any]
Outcome = tuple[Array, float, int]  # outputs on the judging rows, bound, number of networks
Rule = Callable[[str, "Members"], Outcome]
ROUNDS = 30  # of the greedy average


@dataclass(frozen=True)
class Members:
    """Outputs of the strengths of a family; what a strength predicts is the mean of its folds.

    Attributes
    ----------
    strengths, bounds : ndarray of shape (members,)
    held : ndarray of shape (members, training rows)
        From networks that were not trained on the row.
    folds : ndarray of shape (members, folds, judging rows)
    refits : ndarray of shape (seeds, judging rows)
        Networks of the best strength that were trained on all rows.
    first : ndarray of bool of shape (training rows,)
        The rows held out from the first fold.
    y, judges_y : ndarray of shape (rows,)
    """

    strengths: Array
    held: Array
    folds: Array
    refits: Array
    bounds: Array
    first: Array
    y: Array
    judges_y: Array

    @property
    def judged(self) -> Array:
        """The means over folds, of shape (members, judging rows)."""
        return np.asarray(self.folds.mean(axis=1))

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
    names = ("strengths", "held", "folds", "refits", "bounds")
    together = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    shared = {n: getattr(parts[0], n) for n in ("first", "y", "judges_y")}
    return Members(**together, **shared)


def first_split(members: Members) -> Members:
    """Return what is known if only the first fold is held out, and its networks are kept."""
    rows = members.first > 0.5
    folds = members.folds[:, :1]
    return replace(members, held=members.held[:, rows], y=members.y[rows], folds=folds)


def mean_loss(task: str, outputs: Array, y: Array) -> float:
    """Return the mean squared error, or the cross-entropy of logits."""
    if task == "regression":
        return float(np.mean((outputs - y) ** 2))
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -outputs, outputs))))


def best_weights(task: str, members: Members) -> Array:
    """Return all weight on the member with the least held-out loss."""
    losses = [members.held_loss(task, k) for k in range(members.count)]
    return np.eye(members.count)[int(np.argmin(losses))]


def greedy_weights(task: str, members: Members) -> Array:
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


def bagged(weigh: Callable[[str, Members], Array]) -> Rule:
    """Return a rule that averages all folds of the members that a way to weigh picks."""

    def rule(task: str, members: Members) -> Outcome:
        weights = weigh(task, members)
        nets = int((weights > 0).sum()) * members.folds.shape[1]
        return weights @ members.judged, float(weights @ members.bounds), nets

    return rule


def of_one_split(weigh: Callable[[str, Members], Array]) -> Rule:
    """Return the same rule if only one fold is held out, and its networks are kept."""
    return lambda task, members: bagged(weigh)(task, first_split(members))


def refit(count: int) -> Rule:
    """Return a rule that averages networks of the best strength trained on all rows."""

    def rule(task: str, members: Members) -> Outcome:
        bound = float(best_weights(task, members) @ members.bounds)
        return members.refits[:count].mean(axis=0), bound, count

    return rule


best, greedy = bagged(best_weights), bagged(greedy_weights)
SINGLE = (
    "plain", "clip", "knots 8", "clip, knots 8", "clip, knots 16", "clip, crelu",
    "clip, residual", "clip, narrow", "clip, short", "clip, fast",
)  # fmt: skip
RECIPES: dict[str, tuple[tuple[str, ...], Rule]] = {
    **{f"{family}: best of one split": ((family,), of_one_split(best)) for family in SINGLE},
    **{f"{family}: one refit": ((family,), refit(1)) for family in SINGLE},
    **{f"{family}: four refits": ((family,), refit(4)) for family in SINGLE},
    **{f"{family}: best": ((family,), best) for family in SINGLE},
    **{f"{family}: greedy": ((family,), greedy) for family in SINGLE},
    "plain + clip: greedy": (("plain", "clip"), greedy),
    "plain + knots 8: greedy": (("plain", "knots 8"), greedy),
    "plain + clip, knots 8: greedy": (("plain", "clip, knots 8"), greedy),
    "clip + clip, knots 8: greedy": (("clip", "clip, knots 8"), greedy),
    "plain + clip + both knots: greedy": (("plain", "clip", "knots 8", "clip, knots 8"), greedy),
    "clip + clip, knots 8: greedy of one split": (
        ("clip", "clip, knots 8"),
        of_one_split(greedy_weights),
    ),
    "all: best": (SINGLE, best),
    "all: greedy": (SINGLE, greedy),
    "all: greedy of one split": (SINGLE, of_one_split(greedy_weights)),
}


def judge(recipe: str, dataset: str, folder: Path, data: str) -> list[Any]:
    """Return a line of the table: the recipe's loss on the judging rows, bound and networks."""
    families, rule = RECIPES[recipe]
    keys = [cell_key({"dataset": dataset, "family": family}) for family in families]
    members = joined([Members.load(folder / f"{key}.npz") for key in keys])
    task = load_table(dataset, data).task
    outputs, bound, nets = rule(task, members)
    loss = reported_loss(task, mean_loss(task, outputs, members.judges_y))
    return [dataset, recipe, round(loss, 5), round(bound, 4), nets]
