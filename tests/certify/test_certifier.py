"""Proofs about networks of PyTorch users: no table, no estimator."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import psilonnet
from certify.fitted_models import MODELS, QUICK, moved_rows, scales_of, table
from certify.random_averages import random_average
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.certify import Box, Certifier, Perturbation, attack, class_margins
from psilonnet.nn import AveragedNet, ColumnMap, PSiLONNet, PSiLONResNet
from psilonnet.tables import read_columns
from sizes import size


def nets():
    torch.manual_seed(0)
    yield nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    yield PSiLONNet(3, 3, width=8, depth=2)
    yield PSiLONResNet(3, 1, width=8, depth=2)
    # Two parts, one with logarithmic tails, one clipped.
    yield random_average(torch.Generator().manual_seed(21), ("P-Net", "knots"), 3)


@pytest.mark.parametrize("method", ["global", "local", "linear"])
@pytest.mark.parametrize("net", [*nets()], ids=lambda net: type(net).__name__)
def test_a_network_is_certified_without_a_table(net, method):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 3, generator=generator, dtype=torch.float64)
    certifier, exact = Certifier(net), net if isinstance(net, AveragedNet) else net.double()
    low, high = certifier.output_range(x, 0.1, method=method)
    radius = torch.from_numpy(certifier.certified_radius(x, method=method))
    robust = certifier.is_robust(x, 0.02, method=method)
    assert (radius > 0).all()
    assert robust.any()
    assert not certifier.is_robust(x, 100.0, method=method).all()

    def classes(rows):
        outputs = exact(rows)
        return outputs.argmax(-1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0).long()

    with torch.no_grad():
        for _ in range(50):
            step = 2 * torch.rand(40, 3, generator=generator, dtype=torch.float64) - 1
            moved = exact(x + 0.1 * step.sign()).numpy()
            # Rows normalised in float64 differ by what float32 rounds.
            assert ((low - 1e-6 <= moved) & (moved <= high + 1e-6)).all()
            certified = certifier.net(x + 0.1 * step.sign()).numpy()
            assert ((low <= certified) & (certified <= high)).all()
            assert (classes(x + radius[:, None] * step) == classes(x)).all()
            assert (classes(x + 0.02 * step) == classes(x))[torch.from_numpy(robust)].all()


def test_inputs_may_move_by_their_own_amounts_and_shares():
    net = nn.Sequential(nn.Linear(2, 1, bias=False))
    nn.init.constant_(net[0].weight, 1.0)
    x = torch.tensor([[1.0, 10.0], [2.0, -20.0]])
    certifier = Certifier(net)
    for delta, expected in (
        (0.5, [1.0, 1.0]),
        ([0.0, 3.0], [3.0, 3.0]),
        (np.array([[1.0, 0.0], [0.0, 2.0]]), [1.0, 2.0]),
        (Perturbation(relative=0.1), [1.1, 2.2]),
        (Perturbation(standard_deviations=1.0, relative=0.1), [3.1, 4.2]),
    ):
        low, high = certifier.output_range(x, delta)
        np.testing.assert_allclose((high - low)[:, 0] / 2, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ({"a": 1.0}, "Columns can be named only where there is a table"),
        (Perturbation(levels=["a"]), "Columns can be named only"),
        (Perturbation(relative={"a": 0.1}), "Columns can be named only"),
        ([-1.0, 0.0], "finite and at least 0"),
        (-1.0, "number of standard deviations"),
        ("any", "give a dict"),
    ],
)
def test_wrong_moves_of_inputs_are_refused(delta, said):
    with pytest.raises(ValueError, match=said):
        Certifier(nn.Sequential(nn.Linear(2, 1))).output_range(torch.zeros(1, 2), delta)


def test_maps_of_categories_are_refused():
    frame, y = table(40)
    model = PSiLONRegressor(**QUICK).fit(frame, y)
    (part,) = model.net_.parts
    numbers = torch.from_numpy(model.encoder_.holds_numbers)
    assert torch.equal(part.columns.bent, numbers)
    bent = replace(part, columns=ColumnMap.of("clipped", torch.ones_like(numbers)))
    few = replace(part, inputs=part.inputs[:3], columns=part.columns.at(torch.arange(3)))
    for wrong in (AveragedNet([bent], len(numbers)), AveragedNet([few], 3)):
        with pytest.raises(ValueError, match="their maps bend columns of numbers only"):
            Certifier(wrong, model.encoder_)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="at least one row"):
        Certifier(nn.Linear(2, 1)).is_robust(torch.zeros(0, 2), 0.1)


@pytest.mark.parametrize("cell", [float("nan"), float("inf")])
def test_rows_must_be_finite(cell):
    rows = torch.zeros(3, 2)
    rows[1, 0] = cell
    with pytest.raises(ValueError, match="Rows must hold finite numbers"):
        Certifier(PSiLONNet(2, 1, width=4, depth=2)).output_range(rows, 0.1)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (1, 2, 3)])
def test_rows_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=r"matrix with 3 columns.*Got the shape \("):
        Certifier(nn.Sequential(nn.Linear(3, 2))).certified_radius(torch.zeros(shape))


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="'method' must be one of"):
        Certifier(nn.Sequential(nn.Linear(2, 1))).certified_radius(
            torch.zeros(1, 2), method="exact"
        )


def proofs_of(model, rows, delta, method):
    """Return the proofs about the parts of a table."""
    return list(model._certifier._parts(read_columns(rows), delta, method))


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize("method", ["global", "local", "linear"])
@pytest.mark.parametrize("name", MODELS)
def test_class_never_changes_within_the_radius(name, method):
    frame, y = table()
    model = PSiLONClassifier(**{**QUICK, **MODELS[name]}).fit(frame, np.digitize(y, [-0.5, 0.7]))
    rows, _ = table(40, seed=1)
    radius = model.certified_radius(rows, method=method)
    assert radius.shape == (40,)
    assert (radius >= 0).all()
    assert (radius > 0).mean() > 0.9
    rng = np.random.default_rng(0)
    before = model.predict(rows)
    for _ in range(30):
        assert (model.predict(moved_rows(rows, scales_of(model), rng, radius)) == before).all()


@pytest.mark.filterwarnings("ignore::psilonnet.tables.OutOfRangeWarning")
@pytest.mark.parametrize("method", ["global", "local", "linear"])
@pytest.mark.parametrize("name", MODELS)
def test_output_range_is_never_left(name, method):
    frame, y = table()
    model = PSiLONRegressor(**{**QUICK, **MODELS[name]}).fit(frame, 1000 + 50 * y)
    rows, _ = table(40, seed=1)
    low, high = model.output_range(rows, 0.5, method=method)
    before = model.predict(rows)
    assert ((low < before) & (before < high)).all()
    rng = np.random.default_rng(0)
    for _ in range(30):
        after = model.predict(moved_rows(rows, scales_of(model), rng, 0.5))
        assert ((low <= after) & (after <= high)).all()
    narrow = model.output_range(rows, 0.0)
    np.testing.assert_allclose(narrow[1] - narrow[0], 0, atol=1e-8)


@pytest.mark.parametrize("method", ["global", "local", "auto"])
@pytest.mark.parametrize("classes", [1, 3])
def test_largest_margins_are_those_that_decide_whether_a_class_stays(classes, method):
    net = PSiLONNet(4, classes, width=8, depth=2, generator=torch.Generator().manual_seed(1))
    certifier = Certifier(net)
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(60, 4, generator=rng, dtype=torch.float64)
    (margins,) = certifier.largest_margins(x, 0.1, method=method)
    assert margins.shape == (60, max(2, classes), max(1, classes - 1))

    def margins_at(rows):
        z = certifier.net(rows).numpy()
        z = np.concatenate([np.zeros_like(z), z], axis=1) if classes == 1 else z
        others = [[j for j in range(z.shape[1]) if j != k] for k in range(z.shape[1])]
        return np.stack([z[:, [k]] - z[:, own] for k, own in enumerate(others)], axis=1)

    for _ in range(30):
        moved = x + 0.1 * (2 * torch.rand(x.shape, generator=rng, dtype=torch.float64) - 1)
        assert (margins_at(moved) <= margins).all()
    chosen = margins_at(x).min(axis=2).argmax(axis=1)
    others = [margins[r, k, c if c < k else c - 1] for r, c in enumerate(chosen)
              for k in range(margins.shape[1]) if k != c]  # fmt: skip
    stays = (np.array(others).reshape(60, -1) < 0).all(axis=1)
    np.testing.assert_array_equal(stays, certifier.is_robust(x, 0.1, method=method))
    assert 0 < stays.sum() < 60


def test_a_slower_method_is_never_worse_and_often_better():
    frame, y = table()
    bent = np.abs(y - np.median(y))
    classifier = PSiLONClassifier(**QUICK).fit(frame, bent > np.median(bent))
    ways = ("global", "local", "linear")
    far, near, nearest = (classifier.certified_radius(frame, method=method) for method in ways)
    assert (near >= far).all()
    assert (nearest >= near).all()
    assert far.sum() < near.sum() < 0.95 * nearest.sum()
    middle = float(np.median(nearest))
    stay = [classifier.is_robust(frame, middle, method=method) for method in (*ways, "auto")]
    assert (stay[0] <= stay[1]).all()
    assert (stay[1] <= stay[2]).all()
    assert stay[1].sum() < stay[2].sum()
    assert (stay[2] == stay[3]).all()
    regressor = PSiLONRegressor(**QUICK).fit(frame, bent)
    widths = []
    for method in ways:
        low, high = regressor.output_range(frame, 0.02, method=method)
        widths.append(high - low)
    assert (widths[1] <= widths[0]).all()
    assert (widths[2] <= widths[1]).all()
    assert widths[1].sum() < 0.9 * widths[0].sum()
    assert widths[2].sum() < 0.9 * widths[1].sum()


def test_delta_agrees_with_the_radius():
    frame, y = table()
    model = PSiLONClassifier(**QUICK).fit(frame, y > 0)
    radius = model.certified_radius(frame)
    middle = float(np.median(radius))
    stays = model.is_robust(frame, middle, method="local")
    assert (stays == (radius > middle)).mean() > 0.98


def test_loaded_model_certifies_the_same(tmp_path):
    frame, y = table()
    model = PSiLONClassifier(**QUICK).fit(frame, y > 0)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(
        psilonnet.load(tmp_path / "m").certified_radius(frame), model.certified_radius(frame)
    )


@pytest.mark.parametrize("name", MODELS)
def test_no_gradient_leaves_what_is_proven(name, tmp_path):
    # Projected gradient on the loaded model, in the space of the encoded columns.
    frame, y = table()
    classifier = PSiLONClassifier(**{**QUICK, **MODELS[name]}).fit(frame, np.digitize(y, [-0.5, 1]))
    regressor = PSiLONRegressor(**{**QUICK, **MODELS[name]}).fit(frame, y)
    for number, model in enumerate((classifier, regressor)):
        model.save(tmp_path / f"{number}")
    classifier, regressor = (psilonnet.load(tmp_path / f"{number}") for number in range(2))
    rows = frame[: size(24, long=40)]

    for method in ("global", "local", "linear"):
        (proofs,) = proofs_of(classifier, rows, 1.0, method)
        radii = torch.tensor(classifier.certified_radius(rows, method=method))
        radius = (proofs.box.radius > 0) * radii[:, None]
        margins, asked = class_margins(proofs.outputs)
        found = attack(proofs.net, proofs.x, Box.of(radius), -asked.expanded)
        assert (found.moves < margins).all()

        (proofs,) = proofs_of(regressor, rows, 0.2, method)
        radius = proofs.box.radius
        up = torch.ones(len(rows), 1, 1, dtype=torch.float64)
        found = attack(proofs.net, proofs.x, Box.of(radius), up).moves
        _, high = regressor.output_range(rows, 0.2, method=method)
        reached = regressor.target_.decode((proofs.outputs + found).numpy())[:, 0]
        assert (reached <= high + 1e-12).all()


def test_many_rows_are_proven_in_parts(monkeypatch):
    frame, y = table()
    labels = np.digitize(y, [-0.5, 0.5])
    classifier = PSiLONClassifier(**QUICK).fit(frame, labels)
    regressor = PSiLONRegressor(**QUICK).fit(frame, y)
    frame = frame[: size(30, long=150)]

    def proofs():
        for method in ("global", "local", "linear"):
            yield classifier.certified_radius(frame, method=method)
            yield from regressor.output_range(frame, 0.1, method=method)

    whole = list(proofs())
    monkeypatch.setattr("psilonnet.certify.certifier.PART", 20 * len(frame))
    parts = list(proofs())
    assert len(proofs_of(classifier, frame, 1.0, "local")) > 10
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_margin_of_zero_has_radius_zero():
    x = np.array([["a", 1.0], ["b", np.nan]] * 20, dtype=object)
    model = PSiLONClassifier(**{**QUICK, "max_steps": 1, "calibrate": False}).fit(x, [0, 1] * 20)
    for part in model.net_.parts:
        for layer in part.net.layers:
            layer.weight.zero_()
            layer.bias.zero_()
    for method in ("global", "local", "linear"):
        with pytest.warns(UserWarning, match="this table has none that vary"):
            assert (model.certified_radius(x, method=method) == 0).all()


def test_a_radius_without_numbers_is_warned_about():
    city = np.array(["Lima", "Oslo", "Rome"] * 20)
    model = PSiLONClassifier(width=8, depth=1, max_steps=20, reg_strength=1e-3, cv=2)
    frame = pd.DataFrame({"same": 1.0, "city": city})
    model.fit(frame, city == "Oslo")
    with pytest.warns(UserWarning, match=r"table has none that vary.*delta=\{'city': 'any'\}"):
        model.certified_radius(frame)
    model.is_robust(frame, {"city": "any"})  # no word
    frame = pd.DataFrame({"same": [1.0, np.nan] * 30})
    model.fit(frame, frame.same.isna())
    with pytest.warns(UserWarning, match=r"radius says nothing here\.$"):
        model.certified_radius(frame)
