"""The results of the deep ablation and the lines of its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from experiments.paper.fashion_certificates import PUBLISHED
from experiments.paper.fashion_nets import MODELS

if TYPE_CHECKING:
    from experiments.cells import Cell

PAPER_COLUMNS = ("train_cross_entropy", "test_cross_entropy", "test_accuracy", "near_sparsity")
BOUNDS = ("path_norm", "improved", "merged", "product", "path_norm_joined")
FINALISTS = 2  # strengths of each model that get the full training
Line = dict[str, Any]


@dataclass
class Study:
    """The results that are there, with their cells."""

    pairs: list[tuple[Cell, Cell]] = field(default_factory=list)

    def stage(self, stage: str, model: str) -> list[tuple[Cell, Cell]]:
        """Return the cells and results of a stage and a model."""
        return [p for p in self.pairs if (p[0]["stage"], p[0]["model"]) == (stage, model)]

    def ranked(self, stage: str, model: str) -> list[tuple[Cell, Cell]]:
        """Return the nets of a model by validation loss, the best first; not the diverged."""
        own = [pair for pair in self.stage(stage, model) if "diverged" not in pair[1]]
        return sorted(own, key=lambda pair: float(pair[1]["valid_cross_entropy"]))

    def best(self) -> dict[str, tuple[Cell, Cell]]:
        """Return the fully trained net of each model with the least validation loss."""
        ranked = {model: self.ranked("full", model) for model in MODELS}
        return {model: nets[0] for model, nets in ranked.items() if nets}

    def times(self) -> dict[str, float]:
        """Return the time of a step of each model, relative to P."""
        found: list[dict[str, float]] = [r["relative_time"] for _, r in self.stage("times", "all")]
        return found[0] if found else {}


def missing(study: Study) -> list[str]:
    """Return what the study does not have yet, in sentences."""
    full = {model: len(study.stage("full", model)) for model in MODELS}
    found = []
    if none := [model for model in MODELS if not full[model]]:
        found.append(f"Not complete: {', '.join(sorted(none))} missing.")
    if some := [model for model in MODELS if 0 < full[model] < FINALISTS]:
        found.append(f"Trained at one of their {FINALISTS} strengths only: {', '.join(some)}.")
    if not study.times():
        found.append("The times are not measured yet.")
    return found


def table_lines(study: Study) -> list[Line]:
    """Return our Table 3: the best net of each model."""
    times = study.times()
    return [
        {
            "model": model,
            **{name: result[name] for name in PAPER_COLUMNS},
            "relative_time": times.get(model, ""),
            "reg_strength": cell["reg_strength"],
            **{name: result[name] for name in BOUNDS},
        }
        for model, (cell, result) in study.best().items()
    ]


def scout_lines(study: Study) -> list[Line]:
    """Return the validation loss of every strength, after the short and the full training."""
    lines = []
    for model in MODELS:
        full = {c["reg_strength"]: r for c, r in study.ranked("full", model)}
        for cell, result in study.stage("scout", model):
            strength = cell["reg_strength"]
            longer = full.get(strength, {}).get("valid_cross_entropy", "")
            shorter = result.get("valid_cross_entropy", "diverged")
            line = {"model": model, "reg_strength": strength}
            lines.append({**line, "scout_valid": shorter, "full_valid": longer})
    return lines


def edges(study: Study) -> list[str]:
    """Return the models whose chosen strength is the least or the largest of their grid."""
    found = []
    for model, (cell, _) in study.best().items():
        grid = [own["reg_strength"] for own, _ in study.stage("scout", model)]
        if cell["reg_strength"] in (min(grid), max(grid)):
            found.append(model)
    return found


def certificate_lines(study: Study) -> list[Line]:
    """Return certified and attacked accuracies of the fully trained P nets."""
    return [
        {
            "reg_strength": cell["reg_strength"],
            **line,
            "published_distance_net": PUBLISHED.get(line["size"], ""),
        }
        for cell, result in study.ranked("full", "P")
        for line in result["certificates"]
    ]


def linear_lines(study: Study) -> list[Line]:
    """Return what linear bounds add to the certificates of the best P."""
    return [line for _, result in study.stage("linear", "P") for line in result["linear"]]


def pruning_lines(study: Study) -> list[Line]:
    """Return the best P before (trained without pruning) and after each pruning."""
    if not study.ranked("pruned", "P"):
        return []
    _, before = study.best()["P"]
    shared = ("test_accuracy", "test_cross_entropy", "improved")
    own = ("exact_sparsity", "nonzero", "parameters", "compact_parameters")
    lines = [{"rows_at": "not pruned", **{name: before[name] for name in shared}}]
    for cell, result in study.stage("pruned", "P"):
        start = "as trained" if cell["row_norm"] is None else f"norm {cell['row_norm']:g}"
        lines.append({"rows_at": start, **{name: result[name] for name in (*shared, *own)}})
        for name in ("live_widths", "compact_widths"):
            lines[-1][name] = "-".join(map(str, result[name]))
    return lines


def depth_lines(study: Study) -> list[Line]:
    """Return what a short training reaches at each depth, and what the penalty costs."""
    names = ("train_cross_entropy", "valid_cross_entropy", "test_accuracy", "improved", "penalty")
    costs = ("step_milliseconds", "penalty_milliseconds")
    return [
        {"depth": cell["depth"], **{name: result.get(name, "diverged") for name in names + costs}}
        for cell, result in study.stage("depth", "P")
    ]
