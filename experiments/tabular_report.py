"""The report on Tables 1 and 2: ours beside the paper's, in words, numbers and one picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

from experiments.openml import TASKS, table_version

if TYPE_CHECKING:
    from collections.abc import Mapping

MODELS = ("LR", "RF", "S-Net", "P-Net")
Losses = dict[str, dict[str, float]]  # table -> model -> test loss


def paper_losses() -> Losses:
    """Return the paper's test losses."""
    with (Path(__file__).parent / "paper" / "tabular.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {line["dataset"]: {model: float(line[model]) for model in MODELS} for line in lines}


def our_losses(lines: list[dict[str, str]]) -> Losses:
    """Return our test losses in the fresh reading, of the tables that have all models."""
    losses: Losses = {}
    for line in lines:
        if line["reading"] == "fresh":
            losses.setdefault(line["dataset"], {})[line["model"]] = float(line["test_loss"])
    return {name: row for name, row in losses.items() if set(MODELS) <= set(row)}


def wins(losses: Losses, model: str, other: str) -> int:
    """Count the tables on which a model has the lower loss, to the three digits of the paper."""
    return sum(round(t[model], 3) < round(t[other], 3) for t in losses.values())


def markdown(ours: Losses, paper: Losses, lines: list[dict[str, str]], note: str = "") -> str:
    """Return the report as Markdown; a note comes first."""
    text = [
        "# Tables 1 and 2: small tables\n",
        "Test loss (root mean squared error in quartile deviations, or cross-entropy); ours / the "
        "paper's. 2,000 training rows, one seed, fresh starts. Written by "
        "`python -m experiments.tabular --data DIR`.\n" + note,
        "| table | version | " + " | ".join(MODELS) + " |",
        "|---|---|" + "---|" * len(MODELS),
    ]
    for name, row in ours.items():
        marks = [f"{row[model]:.3f} / {paper[name][model]:.3f}" for model in MODELS]
        text.append(f"| {name} | {table_version(name)} | " + " | ".join(marks) + " |")
    text.append(
        f"\n| | ours, of {len(ours)} | the paper, on the same | the paper, of {len(paper)} |"
    )
    text.append("|---|---|---|---|")
    same = {name: paper[name] for name in ours}
    for model, other in (("P-Net", "S-Net"), ("P-Net", "RF"), ("S-Net", "RF")):
        counts = [wins(losses, model, other) for losses in (ours, same, paper)]
        text.append(f"| {model} better than {other} | " + " | ".join(map(str, counts)) + " |")
    text.append(
        "\nThe paper's text says 15 wins of P-Net over the forest: it counts a tie in its table "
        "(delays_zurich_transport, which is not among our tables)."
    )
    text += ["\n## Other readings\n", *_readings(lines, ours)]
    return "\n".join(text) + "\n"


def _readings(lines: list[dict[str, str]], ours: Losses) -> list[str]:
    """Return the table of warm starts and of categories as codes."""
    text = ["| table | model | reading | test loss | fresh, 0/1 columns |", "|---|---|---|---|---|"]
    for line in lines:
        if line["reading"] != "fresh" and line["dataset"] in ours:
            name, model = line["dataset"], line["model"]
            cells = [name, model, line["reading"], f"{float(line['test_loss']):.3f}"]
            text.append("| " + " | ".join([*cells, f"{ours[name][model]:.3f}"]) + " |")
    return text


def draw(ours: Losses, paper: Losses, path: Path) -> None:
    """Draw P-Net's loss relative to S-Net's and to the forest's, ours and the paper's."""
    names = [name for name in TASKS if name in ours][::-1]
    figure, axes = plt.subplots(1, 2, figsize=(10, 8), sharey=True, layout="constrained")
    for axis, other in zip(axes, ("S-Net", "RF"), strict=True):
        _dots(axis, names, {n: paper[n]["P-Net"] / paper[n][other] for n in names}, "the paper")
        _dots(axis, names, {n: ours[n]["P-Net"] / ours[n][other] for n in names}, "ours")
        axis.axvline(1, color="0.6", lw=1)
        axis.set_xscale("log")
        axis.set_xticks([0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5], minor=False)
        axis.set_xticks([], minor=True)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set(title=f"P-Net against {other}", xlabel="ratio of test losses; left: P-Net wins")
        axis.grid(axis="y", color="0.92")
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[0].legend(loc="lower left", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _dots(axis: plt.Axes, names: list[str], ratios: Mapping[str, float], label: str) -> None:
    ours = label == "ours"
    values = [min(max(ratios[name], 0.45), 1.6) for name in names]
    face = "#2a6f97" if ours else "white"
    axis.scatter(values, names, s=42 if ours else 60, color=face, edgecolor="#2a6f97", label=label)


def write_report(lines: list[dict[str, str]], folder: Path, note: str = "") -> dict[str, int]:
    """Write ``tabular.md`` and ``tabular.png``; return the counts."""
    ours, paper = our_losses(lines), paper_losses()
    (folder / "tabular.md").write_text(markdown(ours, paper, lines, note))
    draw(ours, paper, folder / "tabular.png")
    return {
        "tables": len(ours),
        "p_better_than_s": wins(ours, "P-Net", "S-Net"),
        "p_better_than_forest": wins(ours, "P-Net", "RF"),
        "s_better_than_forest": wins(ours, "S-Net", "RF"),
    }
