"""The report on the rivals: ranks, wins and ratios, on the tables where all models are there."""

from __future__ import annotations

from math import exp, log
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

from experiments.data import CONFIRMATION, DEVELOPMENT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from experiments.cells import Cell

Line = dict[str, str]
Losses = dict[str, dict[str, float]]  # table -> model -> test loss
SPLITS = ("0", "1", "2")  # their seeds
OURS, YARDSTICK = "psilonnet", "CatBoost"
WORSE = 1.02  # a loss over that of an earlier recipe
TITLE = """# What users would pick instead

Test loss (root mean squared error in quartile deviations, or cross-entropy) after 2,000 training
rows. Written by `python -m experiments.comparison.rivals --data DIR`. TabPFN is not among them: it
downloads its weights at run time.
"""


def losses_of(lines: Iterable[Line], protocol: str, seed: str = "0") -> Losses:
    """Return the losses of a protocol on one split; readings other than the usual are left out."""
    losses: Losses = {}
    for line in lines:
        usual = line["reading"] in ("native", "fresh")
        if usual and (line["protocol"], line["seed"]) == (protocol, seed):
            losses.setdefault(line["dataset"], {})[line["model"]] = float(line["test_loss"])
    return losses


def everywhere(losses: Losses) -> list[str]:
    """Return the models that are there on all tables."""
    models = dict.fromkeys(model for row in losses.values() for model in row)
    return [model for model in models if all(model in row for row in losses.values())]


def ranks(losses: Losses) -> dict[str, float]:
    """Return the average rank of each model, the best first; ties share their ranks."""
    models = everywhere(losses)

    def rank(row: dict[str, float], model: str) -> float:
        better = sum(row[m] < row[model] for m in models)
        equal = sum(row[m] == row[model] for m in models)
        return better + (equal + 1) / 2

    found = {m: mean(rank(row, m) for row in losses.values()) for m in models}
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def wins(losses: Losses, other: str) -> tuple[int, int]:
    """Count the tables on which we have the lower loss, and those where both are there."""
    rows = [row for row in losses.values() if OURS in row and other in row]
    return sum(row[OURS] < row[other] for row in rows), len(rows)


def ratios(losses: Losses, names: Iterable[str]) -> tuple[float, float]:
    """Return median and geometric mean of our loss over the yardstick's."""
    found = [losses[name][OURS] / losses[name][YARDSTICK] for name in names]
    return median(found), exp(mean(map(log, found)))


def over_splits(lines: list[Line], protocol: str) -> list[Losses]:
    """Return the losses on the splits on which ours are whole, of the models that are on all."""
    first, *others = (losses_of(lines, protocol, seed) for seed in SPLITS)
    whole = [first, *(s for s in others if all(OURS in s.get(name, {}) for name in first))]
    models = [m for m in everywhere(first) if all(m in s[name] for s in whole for name in first)]
    return [{name: {m: split[name][m] for m in models} for name in first} for split in whole]


def split_figures(lines: list[Line], protocol: str) -> dict[str, Any]:
    """Return ranks and wins by the mean loss over the splits, and wins on single splits."""
    splits = over_splits(lines, protocol)
    if len(splits) == 1:
        return {}
    models = everywhere(splits[0])
    means = {
        name: {m: mean(split[name][m] for split in splits) for m in models} for name in splits[0]
    }
    said: dict[str, Any] = {}
    over = f"{protocol}_{len(splits)}_splits"
    said[f"{over}_ranks"] = {m: round(r, 2) for m, r in ranks(means).items()}
    for other in (model for model in models if model != OURS):
        single = [wins(split, other) for split in splits]
        better, tables = map(sum, zip(*single, strict=True))
        said[f"{over}_better_than_{other}"] = (
            "{} of {}, ".format(*wins(means, other)) + f"{better} of {tables} single fits"
        )
        said[f"{over}_over_{other}"] = [
            round(exp(mean(log(split[name][OURS] / split[name][other]) for name in split)), 3)
            for split in splits
        ]
    if YARDSTICK in models:
        said[f"{over}_over_{YARDSTICK}_of_means"] = over_yardstick(means)
    return said


def against_earlier(lines: list[Line], earlier: list[Line]) -> Cell:
    """Return how losses compare with those of an earlier recipe, on the splits that both have.

    They are of the protocol "user". A table is worse if the mean of its ratios is above 1.02 and
    more than two of its standard errors above 1.
    """
    ratios: dict[str, list[float]] = {}
    for seed in SPLITS:
        now, before = (losses_of(own, "user", seed) for own in (lines, earlier))
        for name in now:
            if OURS in now[name] and OURS in before.get(name, {}):
                ratios.setdefault(name, []).append(now[name][OURS] / before[name][OURS])
    whole = {name: own for name, own in ratios.items() if len(own) == len(SPLITS)}
    if not whole:
        return {}
    worse = {
        name: round(mean(own), 3)
        for name, own in whole.items()
        if mean(own) > WORSE and mean(own) - 2 * stdev(own) / len(own) ** 0.5 > 1
    }
    over = exp(mean(log(ratio) for own in whole.values() for ratio in own))
    return {
        "earlier_recipe_geometric_mean": round(over, 4),
        "earlier_recipe_tables_better": sum(mean(own) < 1 for own in whole.values()),
        "earlier_recipe_tables_worse": worse or "none",
    }


def over_yardstick(means: Losses) -> dict[str, Any]:
    """Return how the means over the splits compare with the yardstick's."""
    over = {name: row[OURS] / row[YARDSTICK] for name, row in means.items()}
    confirmed = [over[name] for name in CONFIRMATION if name in over]
    return {
        "median": round(median(over.values()), 4),
        "geometric mean": round(exp(mean(map(log, over.values()))), 4),
        "confirmation tables better": f"{sum(r < 1 for r in confirmed)} of {len(confirmed)}",
        "above 1.05": sum(r > 1.05 for r in over.values()),
        "largest": round(max(over.values()), 3),
    }


def figures(
    lines: list[Line], earlier: list[Line] | None = None, selections: list[Line] | None = None
) -> dict[str, Any]:
    """Return ranks, wins and ratios under both protocols, and beside an earlier recipe.

    ``selections`` are lines of our other selections, each a model of its own.
    """
    said: dict[str, Any] = {}
    for protocol in ("paper", "user"):
        losses = losses_of(lines, protocol)
        if not losses or OURS not in everywhere(losses):
            continue
        said[f"{protocol}_ranks"] = {m: round(r, 2) for m, r in ranks(losses).items()}
        for other in (model for model in ranks(losses) if model != OURS):
            said[f"{protocol}_better_than_{other}"] = "{} of {}".format(*wins(losses, other))
        parts = {
            "development": [name for name in losses if name in DEVELOPMENT],
            "confirmation": [name for name in losses if name not in DEVELOPMENT],
        }
        for part, names in parts.items():
            if names and YARDSTICK in everywhere(losses):
                pair = [round(value, 4) for value in ratios(losses, names)]
                said[f"{protocol}_{part}_median_and_mean_ratio"] = pair
        said |= split_figures(lines, protocol)
    said |= against_earlier(lines, earlier or [])
    return said | selection_figures(lines, selections or [])


def selection_figures(lines: list[Line], selections: list[Line]) -> Cell:
    """Return for each other selection how it compares with the default and the yardstick.

    Of the fits of protocol "user" on all splits that both have: geometric means of the losses and
    bounds over those of the default, and on how many tables the mean loss is below the yardstick's.
    """
    usual = [x for x in lines if x["protocol"] == "user"]
    by = {(x["dataset"], x["seed"], x["model"]): x for x in usual}
    said: Cell = {}
    for word in dict.fromkeys(x["model"] for x in selections):
        own = [x for x in selections if x["model"] == word and x["protocol"] == "user"]
        pairs = [(x, by[x["dataset"], x["seed"], OURS]) for x in own]
        if not pairs:
            continue
        said[f"{word}_over_default"] = {
            figure: round(exp(mean(log(float(a[column]) / float(b[column])) for a, b in pairs)), 3)
            for figure, column in (("loss", "test_loss"), ("bound", "bound"))
        }
        sums: dict[str, list[float]] = {}
        for line in own:
            rival = by.get((line["dataset"], line["seed"], YARDSTICK))
            if rival is not None:
                pair = sums.setdefault(line["dataset"], [0.0, 0.0])
                pair[0] += float(line["test_loss"])
                pair[1] += float(rival["test_loss"])
        better = sum(a < b for a, b in sums.values())
        said[f"{word}_better_than_{YARDSTICK}"] = f"{better} of {len(sums)}"
    return said


def markdown(lines: list[Line], found: dict[str, Any], note: str = "") -> str:
    """Return all losses and what they add up to, as Markdown; a note comes first."""
    text = [TITLE + note]
    for protocol in ("paper", "user"):
        losses = losses_of(lines, protocol)
        if not losses:
            continue
        models = list(dict.fromkeys(model for row in losses.values() for model in row))
        text += [f"\n## Protocol {protocol}\n", "| table | " + " | ".join(models) + " |"]
        text += ["|---|" + "---|" * len(models)]
        for name, row in losses.items():
            least = min(row.values())
            shown = [_shown(row.get(model), least) for model in models]
            text.append(f"| {name} | " + " | ".join(shown) + " |")
    text += ["\n## In all\n", "| figure | value |", "|---|---|"]
    text += [f"| {name.replace('_', ' ')} | {_in_words(value)} |" for name, value in found.items()]
    return "\n".join(text) + "\n"


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _shown(loss: float | None, least: float) -> str:
    if loss is None:
        return ""
    return f"**{loss:.3f}**" if loss == least else f"{loss:.3f}"


def write_report(
    lines: list[Line], found: dict[str, Any], folder: Path, note: str = ""
) -> dict[str, Any]:
    """Write ``rivals.md`` and return its figures."""
    (folder / "rivals.md").write_text(markdown(lines, found, note))
    return found
