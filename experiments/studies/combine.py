"""Ways to make one prediction of many members, chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.data import load_table, reported_loss
from psilonnet.estimators import greedy_weights
from psilonnet.scale import cell_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Array = np.ndarray[Any, Any]
Outcome = tuple[Array, float, int]  # outputs on the judging rows, bound, number of networks
Rule = Callable[[str, "Members"], Outcome]


@dataclass(frozen=True)
class Members:
    """Outputs of the strengths of a family.

    Attributes
    ----------
    strengths, bounds : ndarray of shape (members,)
    held : ndarray of shape (members, held-out rows)
    judged : ndarray of shape (members, judging rows)
        Of the same networks.
    refits : ndarray of shape (members, judging rows)
        Of networks with the same strengths that were trained on all rows.
    y, judges_y : ndarray of shape (rows,)
    """

    strengths: Array
    held: Array
    judged: Array
    refits: Array
    bounds: Array
    y: Array
    judges_y: Array

    @property
    def count(self) -> int:
        """The number of members."""
        return len(self.strengths)

    def losses(self, task: str, part: str) -> list[float]:
        """Return the mean loss of each member in ``held``, ``judged`` or ``refits``."""
        y = self.y if part == "held" else self.judges_y
        return [mean_loss(task, outputs, y) for outputs in getattr(self, part)]

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
    names = ("strengths", "held", "judged", "refits", "bounds")
    together = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    return Members(**together, y=parts[0].y, judges_y=parts[0].judges_y)


def mean_loss(task: str, outputs: Array, y: Array) -> float:
    """Return the mean squared error, or the cross-entropy of logits."""
    if task == "regression":
        return float(np.mean((outputs - y) ** 2))
    return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -outputs, outputs))))


def best_weights(task: str, members: Members) -> Array:
    """Return all weight on the member with the least held-out loss."""
    return np.eye(members.count)[int(np.argmin(members.losses(task, "held")))]


def average_weights(task: str, members: Members) -> Array:
    """Return the weights of the members that go best together on the held-out rows."""
    return greedy_weights(
        members.held, lambda averages: np.array([mean_loss(task, a, members.y) for a in averages])
    )


def weighted(weigh: Callable[[str, Members], Array], parts: Sequence[str]) -> Rule:
    """Return the rule that averages members with the weights of a function, in some parts."""

    def rule(task: str, members: Members) -> Outcome:
        weights = weigh(task, members)
        outputs = np.mean([weights @ getattr(members, part) for part in parts], axis=0)
        nets = int((weights > 0).sum()) * len(parts)
        return outputs, float(weights @ members.bounds), nets

    return rule


COMBINATION_RULES: dict[str, Rule] = {
    "best, refitted": weighted(best_weights, ["refits"]),
    "best": weighted(best_weights, ["judged"]),
    "greedy": weighted(average_weights, ["judged"]),
    "greedy, refitted": weighted(average_weights, ["refits"]),
    "greedy, both": weighted(average_weights, ["judged", "refits"]),
}
SINGLE = (
    "plain", "clip", "tails", "tails, knots 8", "clip, knots 8", "tails, narrow",
    "tails, knots 8, narrow", "tails, short",
)  # fmt: skip
JOINED = {
    "plain + clip": ("plain", "clip"),
    "clip + knots": ("clip", "clip, knots 8"),
    "tails + knots": ("tails", "tails, knots 8"),
    "tails + knots, narrow": ("tails, narrow", "tails, knots 8, narrow"),
}
RECIPES: dict[str, tuple[tuple[str, ...], Rule]] = {
    f"{name}: {way}": (families, rule)
    for name, families in ({name: (name,) for name in SINGLE} | JOINED).items()
    for way, rule in COMBINATION_RULES.items()
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
