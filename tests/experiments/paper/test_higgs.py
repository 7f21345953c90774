"""The Higgs study on a small scale: its pieces fit together."""

import torch

from experiments.data import load_table, make_parts
from experiments.grid import fresh_grid, warm_grid
from experiments.paper.higgs import draw_curves, rows, write_table
from psilonnet.training import Plan, Pruning

SMALL = Plan(steps=6, evaluate_every=2, batch_size=100, progress=False)


def test_higgs_study_fits_together(data_dir, tmp_path):
    table = load_table("higgs", data_dir)
    parts = make_parts(table, seed=0)
    torch.set_num_threads(1)
    strengths = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)

    def fresh(variant, **changes):
        plan = Plan(**{**SMALL.__dict__, **changes})
        return fresh_grid(variant, table, parts, strengths=strengths, plan=plan, width=16)

    cells = {
        "p_fresh": fresh("P-Net"),
        "s_fresh": fresh("S-Net"),
        "s_without_wn": fresh("S-Net without WN"),
        "p_warm": warm_grid("P-Net", table, parts, strengths=strengths[:2], plan=SMALL),
        "s_fine": fresh("S-Net"),
        "batch_0.25x": fresh("P-Net", batch_size=50),
        "batch_5x": fresh("P-Net", batch_size=200),
        "pruned": fresh("P-Net", prune=Pruning(3)),
    }
    assert cells["pruned"]["exact_sparsity"][0] >= 0
    assert len(cells["pruned"]["live_widths"][0]) == 5
    table_rows = rows(cells)
    write_table(table_rows, tmp_path / "higgs.csv")
    draw_curves(cells, tmp_path / "higgs.png")
    written = (tmp_path / "higgs.csv").read_text()
    assert "p_net_test_cross_entropy" in written
    assert written.splitlines()[0] == "quantity,ours,paper"
    assert (tmp_path / "higgs.png").stat().st_size > 10_000
