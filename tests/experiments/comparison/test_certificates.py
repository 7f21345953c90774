"""Certificates on a small scale: what is proved lies between what is found and the bound."""

from functools import partial

import pytest
import torch

from experiments.comparison import certificates
from experiments.data import load_table, make_parts
from experiments.frames import fit_ours
from experiments.gather import StudyResults
from psilonnet.scale import run_cells
from psilonnet.training import Plan
from sizes import size

SMALL = Plan(steps=6, evaluate_every=2, batch_size=100, progress=False)


@pytest.mark.parametrize("name", ["compas_two_years", "cpu_act"])
def test_certificates_lie_between_attack_and_bound(name, data_dir, monkeypatch):
    monkeypatch.setattr(certificates, "ROWS", size(60, long=certificates.ROWS))
    table = load_table(name, data_dir)
    parts = make_parts(table, seed=0)
    torch.set_num_threads(1)
    net, strength = certificates.train("P-Net", table, parts, SMALL)
    assert strength in certificates.MODELS["P-Net"]
    check_certificates(certificates.measure(net, table.task, parts.test))


@pytest.mark.parametrize("name", ["compas_two_years", "bike_sharing_demand"])
def test_certificates_of_our_estimators_are_about_their_average(name, data_dir, monkeypatch):
    quick = {"max_steps": 300, "width": 16, "cv": 2}
    monkeypatch.setattr(certificates, "ROWS", 100)
    monkeypatch.setattr(certificates, "fit_ours", partial(fit_ours, **quick))
    lines = certificates.compute({"dataset": name, "model": "psilonnet"}, data=data_dir)["lines"]
    assert [line["model"] for line in lines] == ["psilonnet balanced", "psilonnet provable"]
    for line in lines:
        check_certificates(line)
        assert line["right"] > 0.55


def check_certificates(cell):
    assert cell["merged"] <= cell["improved"] * (1 + 1e-9) <= cell["path_norm"] * (1 + 1e-6)
    assert cell["path_norm"] <= cell["product"] * (1 + 1e-6)
    for moved in certificates.SIZES:
        assert cell[f"found_{moved}"] <= cell[f"local_{moved}"] <= cell["merged"] * (1 + 1e-9)
        shares = [cell[f"{method}_proven_{moved}"] for method in certificates.METHODS]
        assert shares == sorted(shares)
        assert shares[-1] <= cell[f"attacked_{moved}"] <= cell["right"]


def test_report_says_what_is_missing(tmp_path):
    results = StudyResults(tmp_path / "certificates")
    cells = certificates.all_cells()
    shares = {f"{m}_proven_{s}": 0.3 for m in certificates.METHODS for s in certificates.SIZES}
    attacked = {f"attacked_{s}": 0.6 for s in certificates.SIZES}
    line = {"model": "P-Net", "right": 0.7, **shares, **attacked}
    run_cells(lambda cell: {"lines": [line]}, cells[:1], results.folder)
    certificates.write_report(cells, results, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert f"{len(cells) - 1} of {len(cells)} cells are still missing" in text
    assert "| P-Net | 1 | 0.70 | 0.60 / 0.30 / 0.30 / 0.30 |" in text
    assert "| P-Net | 1 | 0.50 / 0.50 / 0.50 |" in text
