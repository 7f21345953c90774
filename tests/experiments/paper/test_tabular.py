"""Tables 1 and 2 on a small scale: cells, lines of the table, and the report."""

import pytest

from experiments.data import LOSS_COLUMNS, load_table, make_parts
from experiments.grid import fresh_grid
from experiments.paper.baselines import forest_grid, linear_grid
from experiments.paper.tabular import MODELS, cells, is_whole, row
from experiments.paper.tabular_report import MODELS as COMPARED
from experiments.paper.tabular_report import paper_losses, wins, write_report
from psilonnet.training import Plan

SMALL = Plan(steps=6, evaluate_every=2, batch_size=100, progress=False)


def test_cells_of_the_tables_are_all_there():
    listed = list(cells())
    assert len(listed) == 4 * 29 + 4 + 6
    whole = {(cell["model"], cell["reading"]) for cell in listed if is_whole(cell)}
    assert whole == set(MODELS)
    assert [cell.get("grid") == "searched" for cell in listed] == [not is_whole(c) for c in listed]
    assert sum(map(is_whole, listed)) == 2 * 29 + 8 + 2 + 4
    assert [cell["model"] for cell in listed[:58]] == ["LR"] * 29 + ["RF"] * 29


@pytest.mark.parametrize("name", ["cpu_act", "compas_two_years"])
def test_baselines_and_nets_make_lines_of_the_table(name, data_dir):
    table = load_table(name, data_dir)
    parts = make_parts(table, seed=0)
    results = {
        "LR": linear_grid(table, parts),
        "RF": forest_grid(table, make_parts(table, seed=0, codes=True), n_trees=20),
        "S-Net": fresh_grid("S-Net", table, parts, plan=SMALL, width=16, curves=False),
    }
    for model, result in results.items():
        cell = {"dataset": name, "model": model, "reading": "fresh", "seed": 0}
        line = dict(zip([*LOSS_COLUMNS, "tried"], row(cell, result, table.task), strict=True))
        assert float(line["test_loss"]) > 0
        assert (line["near_sparsity"] == "") == (model != "S-Net")
        assert (line["path_norm"] == "") == (model == "RF")
    # The linear model needs no luck to come out as in the paper.
    ours = float(row({**cell, "model": "LR"}, results["LR"], table.task)[8])
    assert ours == pytest.approx(paper_losses()[name]["LR"], rel=0.02)


def test_paper_counts_are_those_of_its_text():
    paper = paper_losses()
    assert len(paper) == 30
    assert wins(paper, "P-Net", "S-Net") == 21
    # The text says 15: it counts delays_zurich_transport, a tie in the digits of its table.
    assert wins(paper, "P-Net", "RF") == 14
    assert paper["delays_zurich_transport"]["P-Net"] == paper["delays_zurich_transport"]["RF"]


def test_report_puts_ours_beside_the_paper(tmp_path):
    paper = paper_losses()
    del paper["delays_zurich_transport"]
    lines = [
        {"dataset": name, "model": model, "reading": "fresh", "test_loss": str(losses[model])}
        | {"path_norm": "1e-30" if name == "higgs" else "2.5"}
        for name, losses in paper.items()
        for model in COMPARED
    ]
    lines.append({**lines[0], "model": "P-Net", "reading": "warm", "test_loss": "0.123"})
    figures = write_report(lines, tmp_path)
    assert figures["tables"] == 29
    text = (tmp_path / "tabular.md").read_text()
    assert "| P-Net | warm | 0.123 |" in text
    assert "are\nthe best on higgs. " in text  # its penalty has made the net constant
    assert (tmp_path / "tabular.png").stat().st_size > 10_000
    assert write_report(lines[3:], tmp_path, "So far.")["tables"] == 28  # one has P-Net only
    text = (tmp_path / "tabular.md").read_text()
    assert "So far." in text
    assert "| ... / " in text
