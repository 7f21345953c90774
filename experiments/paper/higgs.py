"""The Higgs study (Section 4.2): losses, sparsities, pruning, and Figure 1.

python -m experiments.paper.higgs --data DIR
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt

from experiments.cells import experiment_arguments, run_study
from experiments.data import load_table, make_parts
from experiments.grid import best, fresh_grid, warm_grid
from psilonnet.training import STRENGTHS, Plan, Pruning

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from pathlib import Path

    from experiments.cells import Cell

PAPER = {
    "p_net_test_cross_entropy": 0.616,
    "p_net_near_sparsity": 0.725,
    "s_net_test_cross_entropy": 0.693,
    "s_net_near_sparsity": 0.169,
    "l2_wr_finer_search_test_cross_entropy": 0.646,
    "p_net_unregularised_near_sparsity": 0.496,
    "p_net_near_sparsity_batch_0.25x": 0.609,
    "p_net_near_sparsity_batch_5x": 0.749,
    "pruned_exact_sparsity": 0.817,
    "pruned_test_cross_entropy": 0.614,
}
FINE = (5e-3, 7e-3, 1e-2, 1.4e-2, 2e-2, 3e-2)
PLAN = Plan(evaluate_every=50, progress=False)


GRIDS: dict[str, Callable[..., Cell]] = {
    "p_fresh": partial(fresh_grid, "P-Net", strengths=(0.0, *STRENGTHS), plan=PLAN),
    "s_fresh": partial(fresh_grid, "S-Net", plan=PLAN),
    "s_without_wn": partial(fresh_grid, "S-Net without WN", plan=PLAN),
    "p_warm": partial(warm_grid, "P-Net", plan=replace(PLAN, evaluate_every=250)),
    "s_fine": partial(fresh_grid, "S-Net", strengths=FINE, plan=PLAN),
}
# Trained at the one strength that the grid "p_fresh" chose.
PLANS = {
    "batch_0.25x": replace(PLAN, batch_size=100),
    "batch_5x": replace(PLAN, batch_size=2000),
    "prune_from_start": replace(PLAN, prune=Pruning(PLAN.steps)),
    "pruned": replace(PLAN, prune=Pruning(1000)),
    "pruned_norm_4": replace(PLAN, prune=Pruning(1000, row_norm=4.0)),
    "pruned_norm_8": replace(PLAN, prune=Pruning(1000, row_norm=8.0)),
    "pruned_norm_16": replace(PLAN, prune=Pruning(1000, row_norm=16.0)),
}


def compute(cell: Cell, *, data: str) -> Cell:
    """Compute a grid, or one net at a given strength."""
    table = load_table("higgs", data)
    parts = make_parts(table, seed=0)
    if cell["name"] in GRIDS:
        return GRIDS[cell["name"]](table=table, parts=parts)
    plan = PLANS[cell["name"]]
    return fresh_grid("P-Net", table, parts, strengths=(cell["reg_strength"],), plan=plan)


def rows(cells: dict[str, Cell]) -> list[tuple[str, object]]:
    """Return the quantities of the study, ours."""
    p, s, plain, warm, fine = (
        cells[k] for k in ("p_fresh", "s_fresh", "s_without_wn", "p_warm", "s_fine")
    )
    kp, ks, kn, kw, kf = (best(cell) for cell in (p, s, plain, warm, fine))
    table: list[tuple[str, object]] = [
        ("p_net_test_cross_entropy", p["test_loss"][kp]),
        ("p_net_reg_strength", p["strengths"][kp]),
        ("p_net_near_sparsity", p["near_sparsity"][kp]),
        ("p_net_path_norm", p["penalty"][kp]),
        ("p_net_warm_test_cross_entropy", warm["test_loss"][kw]),
        ("p_net_warm_reg_strength", warm["strengths"][kw]),
        ("p_net_warm_near_sparsity", warm["near_sparsity"][kw]),
        ("s_net_test_cross_entropy", s["test_loss"][ks]),
        ("s_net_reg_strength", s["strengths"][ks]),
        ("s_net_near_sparsity", s["near_sparsity"][ks]),
        ("s_net_without_wn_test_cross_entropy", plain["test_loss"][kn]),
        ("s_net_without_wn_reg_strength", plain["strengths"][kn]),
        ("s_net_without_wn_near_sparsity", plain["near_sparsity"][kn]),
        ("l2_wr_finer_search_test_cross_entropy", fine["test_loss"][kf]),
        ("l2_wr_finer_search_reg_strength", fine["strengths"][kf]),
        ("p_net_unregularised_test_cross_entropy", p["test_loss"][0]),
        ("p_net_unregularised_near_sparsity", p["near_sparsity"][0]),
    ]
    for name in ("batch_0.25x", "batch_5x"):
        table.append((f"p_net_near_sparsity_{name}", cells[name]["near_sparsity"][0]))
        table.append((f"p_net_test_cross_entropy_{name}", cells[name]["test_loss"][0]))
    for name, cell in cells.items():
        if name.startswith("prune"):
            table.append((f"{name}_exact_sparsity", cell["exact_sparsity"][0]))
            table.append((f"{name}_test_cross_entropy", cell["test_loss"][0]))
            table.append((f"{name}_live_widths", "-".join(map(str, cell["live_widths"][0]))))
            table.append((f"{name}_nonzero_weights", cell["nonzero"][0]))
            table.append((f"{name}_row_norms", " ".join(f"{n:.3g}" for n in cell["row_norms"])))
    return table


def write_table(table: list[tuple[str, object]], path: Path) -> None:
    """Write ours beside the paper's."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["quantity", "ours", "paper"])
        for name, value in table:
            shown = f"{value:.6g}" if isinstance(value, float) else value
            writer.writerow([name, shown, PAPER.get(name, "")])


def draw_curves(cells: dict[str, Cell], path: Path) -> None:
    """Draw Figure 1: validation curves of five strengths for each of three networks."""
    panels = {
        "s_without_wn": "S-Net without weight normalisation, L2 regularisation",
        "s_fresh": "S-Net, L2 regularisation",
        "p_fresh": "P-Net, 1-path-norm regularisation",
    }
    figure, axes = plt.subplots(3, 1, figsize=(8.4, 8.4), sharex=True, layout="constrained")
    for axis, (name, title) in zip(axes, panels.items(), strict=True):
        cell = cells[name]
        middle = best(cell)
        low = max(int(name == "p_fresh"), min(middle - 2, len(cell["strengths"]) - 5))
        for shade, k in enumerate(range(low, low + 5)):
            curve = [line[k] for line in cell["valid_curves"]]
            label = f"{cell['strengths'][k]:g}" + ("  (chosen)" if k == middle else "")
            colour = mpl.colormaps["viridis"](shade / 4.6)
            axis.plot(cell["steps"], curve, color=colour, label=label, lw=2.2 - (k != middle))
        axis.set(title=title, ylabel="validation cross-entropy", ylim=(0.57, 0.82))
        axis.axhline(0.6931, color="0.7", lw=0.8, ls=":")
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
        axis.legend(title="reg_strength", fontsize=9, **beside)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("step")
    figure.savefig(path, dpi=110)


def run_all(arguments: Namespace) -> dict[str, Cell]:
    """Compute the grids, then the nets at the chosen strength."""
    grids = {name: {"name": name} for name in GRIDS}
    results = run_study("higgs", compute, grids.values(), arguments)
    chosen = results[grids["p_fresh"]]
    strength = chosen["strengths"][best(chosen)]
    nets = {name: {"name": name, "reg_strength": strength} for name in PLANS}
    results = run_study("higgs", compute, nets.values(), arguments)
    return {name: results[cell] for name, cell in (grids | nets).items() if cell in results}


def main() -> None:
    """Run the study."""
    arguments = experiment_arguments("The Higgs study of the paper.")
    cells = run_all(arguments)
    if arguments.only:
        return
    table = rows(cells)
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_table(table, arguments.results / "higgs.csv")
    draw_curves(cells, arguments.results / "higgs.png")
    for name, value in table:
        print(f"{name:<48} {value!s:<22} {PAPER.get(name, '')}")
    print(json.dumps({name: value for name, value in table if isinstance(value, float)}))


if __name__ == "__main__":
    main()
