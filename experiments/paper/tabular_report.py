"""The report on Tables 1 and 2: ours beside the paper's, in words, numbers and one picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from experiments.openml import TASKS, table_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

MODELS = ("LR", "RF", "S-Net", "P-Net")
OURS = "as measured here"
RIVALS = {
    "S-Net": "S-Net\n(normalised in L2, weight decay)",
    "RF": "RF\n(a random forest)",
}
Losses = dict[str, dict[str, float]]  # table -> model -> test loss
DIFFERENCES = """
## Where ours and the paper's differ

The forest, which has nothing of ours in it, is more than 5 % from the paper's on {tables}. Known
reasons: superconduct has 76 of 79 columns in our copy, topo_2_1 3,554 of 8,885 rows, and
nyc_taxi_green_dec_2016 is the numerical version; one target of yprop_4_1 is far from all others,
and the part it falls into differs from split to split. In brazilian_houses the `hoa` of one test
row is 1,012 standard deviations of the training rows away from their mean, in miniboone a number of
one test row 270,975: nets (and, in the first, linear models) follow it, a forest does not (nor do
the estimators, whose columns have logarithmic tails; `rivals.md`).
For the other tables we know no reason. There all models differ from the paper's in the same way, so
the ratios in the picture are more telling than the losses.

S-Nets that their penalty has made constant (a 1-path-norm below 1e-6; they predict the mean) are
the best on {constant}. The paper's losses on higgs and eye_movements, 0.693 and 0.694, are those
of the mean, too.
"""


def paper_losses() -> Losses:
    """Return the paper's test losses."""
    with (Path(__file__).parent / "published" / "tabular.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {line["dataset"]: {model: float(line[model]) for model in MODELS} for line in lines}


def our_losses(lines: list[dict[str, str]]) -> Losses:
    """Return our test losses in the fresh reading."""
    losses: Losses = {}
    for line in lines:
        if line["reading"] == "fresh":
            losses.setdefault(line["dataset"], {})[line["model"]] = float(line["test_loss"])
    return losses


def with_both(losses: Losses, model: str, other: str) -> Losses:
    """Return the tables on which both models are there."""
    return {name: row for name, row in losses.items() if model in row and other in row}


def wins(losses: Losses, model: str, other: str) -> int:
    """Count the tables on which a model has the lower loss, to the three digits of the paper."""
    rows = with_both(losses, model, other).values()
    return sum(round(row[model], 3) < round(row[other], 3) for row in rows)


def markdown(ours: Losses, paper: Losses, lines: list[dict[str, str]], note: str = "") -> str:
    """Return the report as Markdown; a note comes first."""
    text = [
        "# Tables 1 and 2: small tables\n",
        "Test loss (root mean squared error in quartile deviations, or cross-entropy); ours / the "
        "paper's. 2,000 training rows, one seed, fresh starts. Written by "
        "`python -m experiments.paper.tabular --data DIR`.\n" + note,
        "| table | version | " + " | ".join(MODELS) + " |",
        "|---|---|" + "---|" * len(MODELS),
    ]
    for name, row in ours.items():
        marks = [f"{_shown(row.get(model))} / {paper[name][model]:.3f}" for model in MODELS]
        text.append(f"| {name} | {table_version(name)} | " + " | ".join(marks) + " |")
    text.append("\n| | ours | the paper, on the same | the paper, on all |\n|---|---|---|---|")
    for model, other in (("P-Net", "S-Net"), ("P-Net", "RF"), ("S-Net", "RF"), ("RF", "LR")):
        same = {name: paper[name] for name in with_both(ours, model, other)}
        counts = [
            f"{wins(losses, model, other)} of {len(with_both(losses, model, other))}"
            for losses in (ours, same, paper)
        ]
        text.append(f"| {model} better than {other} | " + " | ".join(counts) + " |")
    text.append(
        "\nThe paper's text says 15 wins of P-Net over the forest: it counts a tie in its table "
        "(delays_zurich_transport, which is not among our tables)."
    )
    far = [n for n, row in ours.items() if abs(row.get("RF", 0) / paper[n]["RF"] - 1) > 0.05]
    constant = [line["dataset"] for line in lines if _is_constant_net(line)]
    text.append(
        DIFFERENCES.format(tables=", ".join(far), constant=", ".join(constant) or "no table")
    )
    text += ["## Other readings\n", *_readings(lines, ours)]
    return "\n".join(text) + "\n"


def _is_constant_net(line: dict[str, str]) -> bool:
    kind = (line["model"], line["reading"])
    return kind == ("S-Net", "fresh") and float(line["path_norm"]) < 1e-6


def _shown(loss: float | None) -> str:
    return "..." if loss is None else f"{loss:.3f}"


def _readings(lines: list[dict[str, str]], ours: Losses) -> list[str]:
    """Return the table of warm starts and of categories as codes."""
    text = ["| table | model | reading | test loss | fresh, 0/1 columns |", "|---|---|---|---|---|"]
    for line in lines:
        if line["reading"] != "fresh" and line["dataset"] in ours:
            name, model = line["dataset"], line["model"]
            cells = [name, model, line["reading"], f"{float(line['test_loss']):.3f}"]
            text.append("| " + " | ".join([*cells, _shown(ours[name].get(model))]) + " |")
    return text


def draw(ours: Losses, paper: Losses, path: Path) -> None:
    """Draw P-Net's loss relative to S-Net's and to the forest's, ours and the paper's."""
    names = [name for name in TASKS if "P-Net" in ours.get(name, {})][::-1]
    size = (10, 1.4 + 0.23 * len(names))
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(-0.6, len(names) - 0.4)
    for axis, other in zip(axes, ("S-Net", "RF"), strict=True):
        both = with_both(ours, "P-Net", other)
        for label, losses in (("as the paper reports it", paper), (OURS, ours)):
            found = {k: losses[name] for k, name in enumerate(names) if name in both}
            _dots(axis, {k: row["P-Net"] / row[other] for k, row in found.items()}, label)
        axis.axvline(1, color="0.6", lw=1)
        axis.set_xscale("log")
        axis.set_xticks([0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5], minor=False)
        axis.set_xticks([], minor=True)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_title(f"P-Net against {RIVALS[other]}", fontsize=11)
        axis.set_xlabel(f"test loss of P-Net over {other}'s\n← P-Net is better      worse →")
        axis.grid(axis="y", color="0.92")
        axis.set_axisbelow(True)
        axis.spines[["top", "right", "left"]].set_visible(False)
        figure.suptitle(
            "The paper's network (P-Net: rows of weights normalised in L1, a small path norm)\n"
            "on 29 tables of 2,000 rows: what the paper reports, and what this library measures",
            fontsize=11,
        )
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _dots(axis: Axes, ratios: Mapping[int, float], label: str) -> None:
    ours = label == OURS
    values = [min(max(ratio, 0.45), 1.6) for ratio in ratios.values()]
    face, size = ("#2a6f97", 42) if ours else ("white", 60)
    axis.scatter(values, list(ratios), s=size, color=face, edgecolor="#2a6f97", label=label)
    for value, (k, ratio) in zip(values, ratios.items(), strict=True):
        if value != ratio:  # beyond the edge: say how far
            text = f"{ratio:.2g} →" if ratio > value else f"← {ratio:.2g}"
            style: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 8, "color": "0.3"}
            axis.annotate(text, (value, k), (0, 4), textcoords="offset points", **style)


def write_report(lines: list[dict[str, str]], folder: Path, note: str = "") -> dict[str, int]:
    """Write ``tabular.md`` and ``tabular.png``; return the counts."""
    ours, paper = our_losses(lines), paper_losses()
    (folder / "tabular.md").write_text(markdown(ours, paper, lines, note))
    draw(ours, paper, folder / "tabular.png")
    return {
        "tables": len(with_both(ours, "P-Net", "S-Net")),
        "p_better_than_s": wins(ours, "P-Net", "S-Net"),
        "p_better_than_forest": wins(ours, "P-Net", "RF"),
        "s_better_than_forest": wins(ours, "S-Net", "RF"),
    }
