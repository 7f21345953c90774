"""The strength that held-out rows choose, and what is said of them."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

from estimators.messy import QUICK, SMALL, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.choosing import HeldOut
from psilonnet.estimators.fitting import Problem
from psilonnet.nn import path_norm_penalty
from psilonnet.training import DivergedError, members_of


def test_path_tells_what_was_tried(fitted):
    path = fitted[0].path_
    assert len(path["reg_strength"]) == 13
    assert path["reg_strength"] == sorted(path["reg_strength"])
    assert fitted[0].reg_strength_ in path["reg_strength"]
    assert max(path["steps"]) == 60
    assert set(path) == {
        "knots", "reg_strength", "valid_loss", "bound", "near_sparsity", "sparsity", "steps",
    }  # fmt: skip
    k = path["reg_strength"].index(fitted[0].reg_strength_)
    left = [v for v, s in zip(path["valid_loss"], path["steps"], strict=True) if s == 60]
    assert path["valid_loss"][k] == min(left)


def test_one_standard_error_buys_a_smaller_bound():
    frame, _, score = messy(300)
    noisy = score + np.random.default_rng(0).normal(size=300)
    best, strong = (
        PSiLONRegressor(**{**SMALL, "max_steps": 400, "selection": selection}).fit(frame, noisy)
        for selection in ("best", "one_standard_error")
    )
    assert strong.reg_strength_ > best.reg_strength_
    assert strong.lipschitz_bound_ < best.lipschitz_bound_


def test_average_is_what_its_members_say():
    frame, labels, _ = messy(200)
    settings = {**SMALL, "max_steps": 200, "knots": (0, 4), "validation": 3}
    settings["selection"] = "average"
    model = PSiLONClassifier(**settings).fit(frame, labels)
    members = model.members_
    assert len(model.path_["knots"]) == 26
    assert set(model.path_["knots"]) == {0.0, 4.0}
    assert len(members["weight"]) == members_of(model.net_) > 1
    assert sum(members["weight"]) == pytest.approx(1)
    assert members["weight"] == sorted(members["weight"], reverse=True)
    assert model.reg_strength_ == members["reg_strength"][0]
    bound = float(path_norm_penalty(model.net_).detach().mean()) / model.temperature_
    assert bound == pytest.approx(model.lipschitz_bound_, rel=1e-4)
    twice = PSiLONClassifier(**settings, n_members=2).fit(frame, labels)
    assert members_of(twice.net_) == 2 * members_of(model.net_)


def test_average_has_the_least_loss_on_held_out_rows():
    frame, _, score = messy(300)
    held = messy(150, seed=1)
    losses = {}
    for selection in ("average", "best"):
        settings = {**SMALL, "max_steps": 200, "knots": (0, 4), "selection": selection}
        model = PSiLONRegressor(**settings).fit(frame, score, validation_data=(held[0], held[2]))
        losses[selection] = np.mean((model.predict(held[0]) - held[2]) ** 2)
        assert model.held_out_score_ == pytest.approx(model.score(held[0], held[2]), abs=1e-6)
    assert losses["average"] < losses["best"]


@pytest.mark.parametrize("n", [2, 3, 5, 12, 39, 40, 100])
def test_tiny_tables_fall_back_to_a_stated_strength(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 2))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        regressor = PSiLONRegressor(**SMALL).fit(x, x[:, 0])
        classifier = PSiLONClassifier(**SMALL).fit(x, np.arange(n) % 2)
    assert [w.category for w in said] == [HeldOutWarning] * (2 if n < 40 else 0)
    if n < 40:
        assert regressor.path_ is None
        assert classifier.path_ is None
        assert regressor.reg_strength_ == classifier.reg_strength_ == 5e-3
        assert classifier.temperature_ == 1.0
    else:
        assert regressor.path_ is not None
    assert np.isfinite(regressor.predict(x)).all()


def test_folds_may_be_any_whole_number():
    frame, labels, _ = messy(60)
    model = PSiLONClassifier(**{**QUICK, "validation": np.int64(3)}).fit(frame, labels)
    expected = PSiLONClassifier(**{**QUICK, "validation": 3}).fit(frame, labels)
    assert model.held_out_score_ == expected.held_out_score_ is not None


def test_small_tables_use_a_strength_that_was_given():
    x = np.random.default_rng(0).normal(size=(10, 2))
    for given, used in (([0.1, 1.0], 0.1), ([0.0, 1e-3], 1e-3), ("auto", 5e-3)):
        model = PSiLONRegressor(**{**QUICK, "reg_strength": given})
        with pytest.warns(HeldOutWarning, match=f"The strength is {used:g}, knots are 0"):
            model.fit(x, x[:, 0])
        assert model.path_ is None
        assert model.reg_strength_ == used


def test_validation_data_is_never_trained_on():
    frame, labels, _ = messy(120)
    held, held_labels, _ = messy(80, seed=1)
    model = PSiLONClassifier(**SMALL).fit(frame, labels, validation_data=(held, held_labels))
    assert len(model.path_["valid_loss"]) == 13
    # Other validation rows that lead to the same strength leave the very same network.
    first, other = (
        PSiLONClassifier(**{**QUICK, "knots": 4}).fit(
            frame, labels, validation_data=(rows, rows_labels)
        )
        for rows, rows_labels in ((held, held_labels), (held[:30], held_labels[:30][::-1]))
    )
    assert first.temperature_ != other.temperature_
    for a, b in zip(first.net_.parameters(), other.net_.parameters(), strict=True):
        assert (a == b).all()


def test_held_out_score_is_that_of_the_given_rows():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(80, 3)), rng.normal(size=(40, 3))
    for number in (x[:, 0], x[:, :2]):
        model = PSiLONRegressor(**QUICK)
        given = new[:, 0] if number.ndim == 1 else new[:, :2]
        model.fit(x, number, validation_data=(new, given))  # the net in use never saw these
        assert model.held_out_score_ == pytest.approx(model.score(new, given), rel=1e-5)
    for classes in (2, 3):
        labels, given = (np.digitize(v[:, 0], [-0.3, 0.3][: classes - 1]) for v in (x, new))
        model = PSiLONClassifier(**QUICK, class_weight="balanced")
        model.fit(x, labels, validation_data=(new, given))
        assert model.held_out_score_ == pytest.approx(model.score(new, given))


def test_held_out_score_counts_weights_and_needs_held_out_rows():
    x = np.random.default_rng(0).normal(size=(60, 2))
    copies = np.repeat([1, 3], 30)
    chooses = PSiLONRegressor(**SMALL)
    split, rows = (np.arange(12, 60), np.arange(12)), np.repeat(np.arange(60), copies)
    same = tuple(np.flatnonzero(np.isin(rows, side)) for side in split)
    weighted = clone(chooses).set_params(validation=[split]).fit(x, x[:, 0], sample_weight=copies)
    repeated = clone(chooses).set_params(validation=[same]).fit(x[rows], x[rows, 0])
    assert weighted.held_out_score_ is not None
    assert weighted.held_out_score_ == repeated.held_out_score_
    assert (weighted.n_rows_, repeated.n_rows_) == (60, 120)
    with pytest.warns(HeldOutWarning):
        assert clone(chooses).fit(x[:10], x[:10, 0]).held_out_score_ is None
    assert PSiLONRegressor(**QUICK).fit(x, x[:, 0]).held_out_score_ is None  # nothing to choose
    one = PSiLONRegressor(**QUICK).fit(x, x[:, 0], validation_data=(x[:1], x[:1, 0]))
    assert one.held_out_score_ is None  # one row has no R^2


def test_pruning_is_refused_only_if_it_is_worse_beyond_a_standard_error():
    y = torch.zeros(400, 1)
    problem = Problem(y, y, torch.ones(400), torch.ones(400), loss="squared_error", outputs=1)
    held_out = HeldOut(problem, np.arange(400))
    usual = np.ones((400, 1))
    assert held_out.excess_loss(usual, usual) == 0
    assert held_out.excess_loss(1.1 * usual, usual) == pytest.approx(0.21)  # of every row: sure
    now_and_then = np.where(np.arange(400)[:, None] % 4 == 0, np.sqrt(1.84), 1.0)
    assert held_out.mean(now_and_then) == pytest.approx(1.21)
    assert held_out.excess_loss(now_and_then, usual) == pytest.approx(
        0.21 - 0.84 * 0.433 / 20, 1e-3
    )


def test_validation_rows_without_a_loss_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 2))
    for huge in (1e30, 1e300):
        with pytest.raises(DivergedError, match="No member has a finite loss on the held-out rows"):
            PSiLONRegressor(**QUICK).fit(x, x[:, 0], validation_data=(x[:5], np.full(5, huge)))
    weights = {0: 0, 1: 1, 2: 1}
    with pytest.raises(ValueError, match="must be of a class with a weight above 0"):
        PSiLONClassifier(**QUICK, class_weight=weights).fit(
            x, np.arange(60) % 3, validation_data=(x[:5], np.zeros(5, dtype=int))
        )
