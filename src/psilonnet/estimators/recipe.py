"""How networks are trained by default: which designs, how many steps, along which strengths."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.estimators.designs import read_designs
from psilonnet.training import Plan, RisingPath

if TYPE_CHECKING:
    from psilonnet.estimators.designs import Design

WEAKEST, STRONGEST, SNAPSHOTS = 5e-5, 1e-1, 11  # of the path by default, for 2,000 rows and more
LARGEST_FACTOR = 20.0  # of these, for small tables
FALLBACK_STRENGTH = 5e-3  # for tables too small to choose on
LEVEL = 0.4  # the share of the steps before the strength rises
EARLY = (1 / 3, 2 / 3)  # snapshots within these, as if training had stopped early
PASSED = 3  # weak strengths that the rise passes over where the level part ended early
STEPS = 1500  # for 2,000 rows
FEW_STEPS = 600  # up to one batch of rows
WIDTH = 128
FEW_WIDTH = 64  # up to FEW_ROWS rows: as good there, and half of the time
FEW_ROWS = 256
TINY, FEW_DESIGNS = 100, 2  # below so many rows, only the first designs


@dataclass(frozen=True)
class Recipe:
    """What is trained for one fit.

    Attributes
    ----------
    designs : tuple of Design
    path : RisingPath
        Of each design, before it is extended.
    factor : float
        Of every strength on the path: few rows need strong ones.
    asked : tuple of float
        The strengths on the path that may be chosen.
    early : tuple of int
        Steps before the strength rises at which snapshots are taken, too.
    plan : Plan
        Batches, seed and precision.
    may_extend : bool
        Whether the level part of the path goes on while the held-out loss falls, and ends early
        where that rises.
    passed : int
        How many strengths the rise passes over then; none of those that were asked for.
    width, depth : int
    device : str
    """

    designs: tuple[Design, ...]
    path: RisingPath
    factor: float
    asked: tuple[float, ...]
    early: tuple[int, ...]
    plan: Plan
    may_extend: bool
    passed: int
    width: int
    depth: int
    device: str


def make_recipe(parameters: dict[str, Any], rows: int, seed: int, *, alone: bool) -> Recipe:
    """Return what parameters ask for.

    Parameters
    ----------
    parameters : dict
        Of an estimator.
    rows : int
    seed : int
    alone : bool
        Whether nothing is held out: then there is one design and one strength.
    """
    automatic = isinstance(parameters["max_steps"], str)
    steps = _auto_steps(rows, parameters["batch_size"]) if automatic else parameters["max_steps"]
    level = round(LEVEL * steps)
    points, asked = _path_strengths(parameters["reg_strength"], alone=alone)
    designs = _designs(parameters, rows)
    free = isinstance(parameters["reg_strength"], str)
    one_batch = rows <= parameters["batch_size"]
    return Recipe(
        designs=designs[:1] if alone else designs,
        path=RisingPath(points, level, int(steps) - level, parameters["learning_rate"]),
        factor=_auto_factor(rows) if free else 1.0,
        asked=asked,
        early=tuple(round(share * level) for share in EARLY if free and share * level >= 1),
        plan=Plan(
            batch_size=parameters["batch_size"],
            seed=seed,
            # Fits whose rows are one batch may be trained side by side, and must come out equal.
            matmul_precision="highest" if one_batch else "medium",
            progress=False,
        ),
        may_extend=automatic and not one_batch and not alone,
        passed=PASSED if free else 0,
        width=_auto_width(rows) if isinstance(parameters["width"], str) else parameters["width"],
        depth=parameters["depth"],
        device=parameters["device"],
    )


def _designs(parameters: dict[str, Any], rows: int) -> tuple[Design, ...]:
    designs = read_designs(parameters["designs"])
    if isinstance(parameters["designs"], str) and rows < TINY:
        designs = designs[:FEW_DESIGNS]
    if not parameters["prune"]:
        return designs
    sparse = tuple(design for design in designs if design.directions == "l1")
    if not sparse:
        raise ValueError(
            "Pruning needs a design with directions 'l1': only such rows have a projection onto "
            f"exact zeros. Got designs {[d.in_words() for d in designs]}: add one, or use "
            "prune=False."
        )
    return sparse


def _auto_steps(rows: int, batch_size: int = 256) -> int:
    """Return how many steps a training takes by default, before its level part is extended.

    600 for tables of up to one batch; then they grow with the root of the rows, from 1,000 to
    1,500 at 2,000 rows and to 4,500 at most.

    >>> [_auto_steps(rows) for rows in (100, 500, 2000, 8000, 100_000)]
    [600, 1000, 1500, 3000, 4500]
    """
    if rows <= batch_size:
        return FEW_STEPS
    return round(min(3 * STEPS, max(1000, STEPS * sqrt(rows / 2000))))


def _auto_width(rows: int) -> int:
    """Return how many neurons a hidden layer has by default.

    >>> [_auto_width(rows) for rows in (100, 256, 257, 100_000)]
    [64, 64, 128, 128]
    """
    return FEW_WIDTH if rows <= FEW_ROWS else WIDTH


def _auto_factor(rows: int) -> float:
    """Return how many times as strong the strengths are for few rows as they are for 2,000.

    >>> [_auto_factor(rows) for rows in (50, 500, 2000, 10_000)]
    [20.0, 4.0, 1.0, 1.0]
    """
    return min(LARGEST_FACTOR, max(1.0, 2000 / rows))


def _path_strengths(
    reg_strength: Any, *, alone: bool = False
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the strengths that a path goes through, and those that may be chosen.

    The path to a single strength reaches it halfway and stays there.

    >>> _path_strengths(0.01)
    ((5e-05, 0.01, 0.01), (0.01,))
    """
    if isinstance(reg_strength, str):
        if alone:
            return (WEAKEST, FALLBACK_STRENGTH, FALLBACK_STRENGTH), (FALLBACK_STRENGTH,)
        ratio = STRONGEST / WEAKEST
        points = tuple(
            float(f"{WEAKEST * ratio ** (k / (SNAPSHOTS - 1)):.3g}") for k in range(SNAPSHOTS)
        )
        return points, points
    asked = tuple(sorted(float(s) for s in np.atleast_1d(reg_strength)))
    if alone and len(asked) > 1:
        nearest = min(asked, key=lambda s: abs(np.log((s + 1e-12) / FALLBACK_STRENGTH)))
        asked = (nearest,)
    if len(asked) > 1 or asked[0] <= WEAKEST:
        return asked, asked
    return (WEAKEST, *asked, *asked), asked
