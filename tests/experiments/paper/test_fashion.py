"""The deep ablation on a small scale: files, cells, certificates, tables and report."""

import gzip
import hashlib
import signal
import struct
import threading
from argparse import Namespace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch

from experiments.paper import fashion_nets, images
from experiments.paper.fashion_certificates import (
    box,
    certificates,
    linear_certificates,
    margins,
)
from experiments.paper.fashion_mnist import STRENGTHS, Sizes, full_cells, run_all, scout_cells
from experiments.paper.fashion_nets import MODELS, PLAN, bounds, compute, start_run
from experiments.paper.fashion_report import claims, paper_lines, write_certificates, write_report
from experiments.paper.fashion_study import Study
from psilonnet.nn import PlainNet, make_net
from psilonnet.training import DivergedError, Divergence, Rows, Run, one_cycle, take_members

TINY = Sizes(
    width=6,
    depth=2,
    steps=8,
    scout_steps=4,
    depth_steps=4,
    depths=(1, 3),
    prune_steps=4,
    timed_steps=3,
)


def idx(values):
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def folder(tmp_path):
    """Made-up images of 4 x 4 pixels, brighter in the column of their class."""
    rng = np.random.default_rng(0)
    data = tmp_path / "data" / "fashion_mnist"
    data.mkdir(parents=True)
    for part, count in (("train", 120), ("t10k", 30)):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        pixels = rng.integers(0, 100, (count, 16)).astype(np.uint8)
        pixels[np.arange(count), labels] += 150
        for name, values in (
            (f"{part}-images-idx3-ubyte.gz", pixels.reshape(count, 4, 4)),
            (f"{part}-labels-idx1-ubyte.gz", labels),
        ):
            (data / name).write_bytes(gzip.compress(idx(values)))
    return data.parent


@pytest.mark.parametrize("name", ["values", "values.gz"])
def test_idx_file_comes_back(name, tmp_path):
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    content = idx(values)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert (images.read_idx(tmp_path / name) == values).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"must begin with 00 00 08\. .* begins with ''"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x01\x00", r"begins with '00 00 0d'"),
        (idx(np.zeros(5, np.uint8))[:-1], r"must hold \(5,\) values .* Got 4 instead"),
    ],
)
def test_broken_idx_file_is_refused(content, message, tmp_path):
    (tmp_path / "values").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        images.read_idx(tmp_path / "values")


def test_files_are_found_in_the_folder_or_below_it(folder, tmp_path):
    below = images.image_parts(folder)
    itself = images.image_parts(folder / "fashion_mnist")
    assert torch.equal(below.train.x, itself.train.x)
    with pytest.raises(FileNotFoundError, match=r"must hold the files .* '--data download'"):
        images.image_parts(tmp_path)


def test_parts_are_a_sixth_a_third_and_the_test_images(folder):
    parts = images.image_parts(folder)
    assert [len(p.x) for p in (parts.train, parts.valid, parts.test)] == [20, 40, 30]
    assert len(torch.cat((parts.train.x, parts.valid.x)).unique(dim=0)) == 60
    assert not torch.equal(parts.train.x, images.image_parts(folder, seed=1).train.x)
    assert torch.equal(parts.train.x[:, :10].argmax(dim=1), parts.train.y[:, 0].long())


def test_real_images_are_those_of_the_authors(data_dir):
    if not (data_dir / "fashion_mnist").is_dir():
        pytest.skip(f"no Fashion-MNIST at {data_dir}")
    for name, path in images.find_files(data_dir).items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == images.CHECKSUMS[name]
    parts = images.image_parts(data_dir)
    assert [len(p.x) for p in (parts.train, parts.valid, parts.test)] == [10_000, 20_000, 10_000]
    assert (parts.train.x.min(), parts.train.x.max()) == (-1, 1)
    assert parts.test.y.unique(return_counts=True)[1].tolist() == [1000] * 10


@pytest.fixture
def server(folder):
    """The address of a server of the made-up files, and the paths it was asked for."""
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    handler = partial(Handler, directory=str(folder / "fashion_mnist"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_download_is_checked_and_done_once(folder, server, tmp_path, monkeypatch):
    address, asked = server
    sums = {
        name: hashlib.sha256((folder / "fashion_mnist" / f"{name}.gz").read_bytes()).hexdigest()
        for name in images.CHECKSUMS
    }
    monkeypatch.setattr(images, "CHECKSUMS", sums)
    monkeypatch.setattr(images.download, "__defaults__", (address,))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    for _ in range(2):
        parts = images.image_parts("download")
    assert torch.equal(parts.train.x, images.image_parts(folder).train.x)
    assert len(asked) == 4
    assert len(list((tmp_path / "home" / "fashion_mnist").iterdir())) == 4


def test_download_with_another_checksum_is_refused(server, tmp_path):
    with pytest.raises(ValueError, match=r"must have the SHA-256 sum .* Got .* instead"):
        images.download(tmp_path / "new", server[0])
    assert list((tmp_path / "new").iterdir()) == []


def test_plan_is_that_of_the_appendix():
    assert (PLAN.steps, PLAN.batch_size, PLAN.schedule) == (20_000, 200, one_cycle)
    cell = Sizes().cell("full", "Pj", 1e-4)
    assert (cell["width"], cell["depth"], cell["steps"]) == (500, 10, 20_000)
    assert fashion_nets.plan_of(cell).projected
    assert not fashion_nets.plan_of({**cell, "model": "P"}).projected


def test_all_models_have_one_initialisation_that_looks_linear(folder):
    parts = images.image_parts(folder)
    runs = [start_run(TINY.cell("full", model, 1e-4, depth=4), parts) for model in MODELS]
    with torch.no_grad():
        for run in runs:
            assert all((layer.length == 0).all() for layer in run.net.layers[1:-1])
            for a, b in zip(run.net.layers, runs[0].net.layers, strict=True):
                ratio = (a.direction / b.direction).squeeze(0)
                first = ratio[:, :1, :1]
                assert torch.allclose(ratio, first.expand_as(ratio), rtol=1e-4)


def test_bounds_are_ordered_and_joined_means_the_identity_in_the_weight(generator):
    net = make_net("L2-IB-ResNet", 5, 3, width=7, depth=4, generator=generator)
    with torch.no_grad():
        for layer in net.layers:
            layer.direction.copy_(torch.randn(layer.direction.shape, generator=generator))
            layer.length.fill_(0.7)
        found = bounds(net)
        first, *blocks, last = [w.double() for w in net.weights()]
        mass = first.abs().sum(dim=(1, 2))
        for w in blocks:
            mass = sum((torch.eye(7) + w[:, t]).abs() for t in range(2)) @ mass
        assert found["path_norm_joined"] == pytest.approx(float((last.abs().sum(1) @ mass).sum()))
    assert found["merged"] < found["improved"] < found["path_norm"] < found["product"]
    assert found["merged"] < found["path_norm_joined"] < found["path_norm"]


def test_interrupted_cell_ends_as_if_it_had_not_been(folder, tmp_path, monkeypatch):
    cell = TINY.cell("scout", "L2-OB", 1e-4)
    whole = compute(cell, data=str(folder), checkpoints=tmp_path / "a")
    take_step = Run.take_step

    def stopped(run):
        if run.step == 4:
            signal.raise_signal(signal.SIGINT)  # held back until the step is done
        take_step(run)

    monkeypatch.setattr(Run, "take_step", stopped)
    with pytest.raises(KeyboardInterrupt):
        compute(cell, data=str(folder), checkpoints=tmp_path / "b")
    assert len(list((tmp_path / "b").iterdir())) == 1
    monkeypatch.setattr(Run, "take_step", take_step)
    assert compute(cell, data=str(folder), checkpoints=tmp_path / "b") == whole
    assert list((tmp_path / "b").iterdir()) == []


def test_net_that_diverges_is_a_result(folder, tmp_path, monkeypatch):
    def diverge(run):
        raise DivergedError([Divergence(0, 3, float("nan"), 1.0)])

    monkeypatch.setattr(Run, "train", diverge)
    cell = TINY.cell("scout", "S", 1e-1)
    result = compute(cell, data=str(folder), checkpoints=tmp_path / "cells")
    assert list(result) == ["diverged"]
    assert Study([(cell, result)]).ranked("scout", "S") == []


def test_full_trainings_are_the_two_strengths_above_the_best_scout():
    cells = scout_cells(Sizes())
    assert len(cells) == 49
    study = Study([(c, {"valid_cross_entropy": abs(c["reg_strength"] - 2.5e-4)}) for c in cells])
    full = full_cells(study, Sizes())
    assert [c["reg_strength"] for c in full if c["model"] == "P"] == [5e-4, 1e-3]
    assert [c["reg_strength"] for c in full if c["model"] == "S"] == [2.5e-3, 5e-3]
    # A study that is stopped has one strength of every model first.
    assert [c["model"] for c in full] == [*MODELS, *MODELS]
    best_is_last = Study([(c, {"valid_cross_entropy": -c["reg_strength"]}) for c in cells])
    last = [c["reg_strength"] for c in full_cells(best_is_last, Sizes()) if c["model"] == "P"]
    assert last == [5e-4, 1e-3]
    study.pairs = study.pairs[1:]  # a strength of P is missing
    assert {c["model"] for c in full_cells(study, Sizes())} == set(MODELS) - {"P"}


def test_box_stays_within_the_images():
    x = torch.tensor([[-1.0, 0.0, 0.95]], dtype=torch.float64)
    center, radius = box(x, 0.1)
    assert torch.allclose(center - radius, torch.tensor([[-1.0, -0.2, 0.75]]).double())
    assert torch.allclose(center + radius, torch.tensor([[-0.8, 0.2, 1.0]]).double())


def test_certified_images_keep_their_class(folder, generator):
    parts = images.image_parts(folder)
    run = start_run(TINY.cell("full", "P", 1e-3, steps=150, width=12), parts)
    run.train()
    net = PlainNet(take_members(run.net, 0))
    for line in certificates(net, parts.test):
        assert line["certified"] == line["near_certified_global"] <= line["near_certified_local"]
        assert line["near_certified_local"] <= line["near_attacked"] <= line["accuracy"]
    assert line["size"] == 0.1
    assert line["accuracy"] > 0.5
    for k in range(8):
        one = Rows(parts.test.x[k : k + 1], parts.test.y[k : k + 1])
        if certificates(net, one)[0]["near_certified_local"] == 1:
            center, radius = box(one.x.double(), 0.01)
            moved = center + radius * (torch.rand(200, 16, generator=generator) * 2 - 1).sign()
            label = one.y[:, 0].long().expand(200)
            assert (margins(net(moved)[0], label) > 0).all()


def test_linear_bounds_prove_more_images_and_none_that_an_attack_breaks(folder):
    parts = images.image_parts(folder)
    run = start_run(TINY.cell("linear", "P", 1e-5, steps=150, width=12, depth=3), parts)
    run.train()
    lines = linear_certificates(PlainNet(take_members(run.net, 0)), parts.test)
    for line in lines:
        assert line["certified_global"] <= line["certified_local"] <= line["certified_linear"]
        assert line["certified_linear"] <= line["attacked"] <= line["accuracy"]
        assert line["asked"] / line["rows"] == pytest.approx(
            line["attacked"] - line["certified_local"]
        )
    assert any(line["certified_linear"] > line["certified_local"] for line in lines)


@pytest.fixture
def study_arguments(folder, tmp_path):
    cells = tmp_path / "cells"
    return Namespace(data=str(folder), cells=cells, results=tmp_path, only=None, cluster=None)


def test_study_fits_together(study_arguments, tmp_path, monkeypatch):
    torch.set_num_threads(1)
    study = run_all(study_arguments, TINY)
    stages = [cell["stage"] for cell, _ in study.pairs]
    assert {s: stages.count(s) for s in dict.fromkeys(stages)} == {
        "scout": 49,
        "full": 14,
        "depth": 2,
        "pruned": 2,
        "linear": 1,
        "times": 1,
    }
    assert not list((tmp_path / "cells").rglob("*.safetensors"))
    monkeypatch.setattr(fashion_nets, "image_parts", None)  # nothing is computed again
    assert run_all(study_arguments, TINY).pairs == study.pairs

    write_certificates(study, tmp_path)
    figures = write_report(study, tmp_path)
    assert len(figures) == len(MODELS)
    head, *lines = (tmp_path / "fashion_mnist.csv").read_text().splitlines()
    paper = "model,train_cross_entropy,test_cross_entropy,test_accuracy,near_sparsity,relative_time"
    assert head == f"{paper},reg_strength,path_norm,improved,merged,product,path_norm_joined"
    assert [line.split(",")[0] for line in lines] == list(MODELS)
    assert len((tmp_path / "fashion_mnist_certificates.csv").read_text().splitlines()) == 7
    text = (tmp_path / "fashion_mnist.md").read_text()
    for title in ("claims", "Bounds", "Certified accuracy", "linear", "pruned", "other depths"):
        assert title in text
    assert "0.7923" in text
    assert (tmp_path / "fashion_mnist.png").stat().st_size > 10_000


def test_report_on_a_part_of_the_study_says_what_is_missing(study_arguments, tmp_path):
    study_arguments.only = ["P"]
    study = run_all(study_arguments, TINY)
    write_report(study, tmp_path)
    text = (tmp_path / "fashion_mnist.md").read_text()
    assert "Not complete: L1-IB, L1-OB, L2-IB, L2-OB, Pj, S missing." in text
    assert "strengths only" not in text
    assert "The times are not measured yet." in text
    study.pairs = [p for p in study.pairs if p[0]["stage"] != "full"] + study.stage("full", "P")[:1]
    write_report(study, tmp_path)
    text = (tmp_path / "fashion_mnist.md").read_text()
    assert "Trained at one of their 2 strengths only: P." in text
    with pytest.raises(ValueError, match="at least one fully trained net"):
        write_report(Study(), tmp_path)


def test_report_so_far_is_on_the_cells_that_are_there(study_arguments, tmp_path):
    study_arguments.only = ["P"]
    study = run_all(study_arguments, TINY)
    study_arguments.only, study_arguments.so_far = None, True
    assert run_all(study_arguments, TINY).pairs == study.pairs


def test_claims_hold_for_the_table_of_the_paper():
    paper = paper_lines()
    assert list(paper) == list(MODELS) == list(STRENGTHS)
    losses = {model: line["test_cross_entropy"] for model, line in paper.items()}
    times = {model: line["relative_time"] for model, line in paper.items()}
    assert all(claim["holds"] for claim in claims(losses, times))
