"""What held-out rows choose: the average that is best there, by its loss and its bound."""

import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from estimators.messy import QUICK, SMALL, messy
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.problem import Problem
from psilonnet.estimators.recipe import EARLY, SNAPSHOTS
from psilonnet.estimators.selection import (
    MOST_PICKS,
    SELECTIONS,
    HeldOut,
    _bound_weight,
    choose,
    greedy_weights,
)
from psilonnet.training import DivergedError

ALL = {**SMALL, "cv": None}  # rows to choose on are given
TWO = {**SMALL, "designs": [Design(), Design(directions="l2", pieces=3)]}


def zero_problem(rows, loss="squared_error"):
    """Return a problem whose every target is 0 and every weight 1."""
    y, ones = torch.zeros(rows, 1), torch.ones(rows)
    return Problem(y.double(), y, ones, ones, torch.ones(1, dtype=torch.bool), loss, 1)


def made_candidates(seed, rows=50):
    """Return candidates with random errors and bounds, the better ones with larger bounds."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 14))
    spread = rng.uniform(0.3, 1.5, count)
    common = 0.5 * rng.normal(size=(rows, 1))
    return [
        SimpleNamespace(
            outputs=common + s * rng.normal(size=(rows, 1)), bound=rng.lognormal(2, 1.5) / s
        )
        for s in spread
    ]


def loss_and_bound(choice, candidates, held_out):
    bound = sum(w * candidates[k].bound for k, w in zip(choice.picks, choice.shares, strict=True))
    return float(held_out.reported(choice.outputs)), bound


def test_path_tells_what_was_tried(fitted):
    for model in fitted:
        path = model.path_
        assert len(path["reg_strength"]) == SNAPSHOTS + len(EARLY)
        assert path["reg_strength"] == sorted(path["reg_strength"])
        assert path["steps"] == sorted(path["steps"])
        assert path["steps"][-1] == 60
        assert set(path) == {
            "design", "reg_strength", "valid_loss", "bound", "near_sparsity", "sparsity", "steps",
            "weight",
        }  # fmt: skip
        used = [k for k, weight in enumerate(path["weight"]) if weight > 0]
        used.sort(key=lambda k: -path["weight"][k])
        for name, column in model.members_.items():
            assert column == [path[name][k] for k in used]
        assert model.n_iter_ == path["steps"][used[0]]


def test_average_is_what_its_members_say():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=200) > 0
    model = PSiLONClassifier(**{**TWO, "cv": 3}, selection="accurate").fit(x, y)
    members = model.members_
    assert set(model.path_["design"]) == {0.0, 1.0}
    assert model.designs_ == TWO["designs"]
    assert 1 <= len(members["weight"]) <= MOST_PICKS
    assert model.net_.members == 3 * len(members["weight"])
    assert sum(members["weight"]) == pytest.approx(1)
    assert members["weight"] == sorted(members["weight"], reverse=True)
    assert model.reg_strength_ == members["reg_strength"][0]
    shares = [part.weight for part in model.net_.parts]
    assert [float(share.sum()) for share in shares] == pytest.approx(members["weight"])
    assert all((share == share[0]).all() for share in shares)  # folds are averaged plainly
    bound = np.dot(model.path_["weight"], model.path_["bound"]) / model.temperature_
    assert bound == pytest.approx(model.lipschitz_bound_, rel=1e-6)
    assert model.near_sparsity_ == pytest.approx(
        np.dot(model.path_["weight"], model.path_["near_sparsity"])
    )


def test_average_is_no_worse_on_held_out_rows_than_any_snapshot():
    rng = np.random.default_rng(0)
    (x, y), (held, truth) = (
        (x, x[:, 0] + rng.normal(size=len(x))) for x in (rng.normal(size=(n, 3)) for n in (90, 60))
    )
    settings = {**TWO, "cv": None, "learning_rate": 8e-2}
    model = PSiLONRegressor(**settings, selection="accurate")
    model.fit(x, y, validation_data=(held, truth))
    loss = np.mean((model.predict(held) - truth) ** 2) / model.target_.scale[0] ** 2
    assert len(model.members_["weight"]) > 1
    assert loss < min(model.path_["valid_loss"])


def test_greedy_average_is_the_best_of_its_lengths():
    outputs = np.array([[1.0, 1.0], [-1.0, -1.0], [5.0, 5.0]])

    def costs(averages, bounds):
        return np.abs(averages).sum(axis=-1) + 0.5 * bounds

    def found(bounds, **options):
        return greedy_weights(outputs, np.array(bounds), costs, **options).tolist()

    assert found([0, 0, 0]) == [0.5, 0.5, 0]
    assert found([0, 2, 0]) == [0.5, 0.5, 0]  # the bound of an average is the average of the bounds
    assert found([0, 9, 0]) == [1, 0, 0]
    assert found([0, 0, 0], most=1) == [1, 0, 0]


def test_one_candidate_is_looked_at_once():
    asked = []

    def costs(averages, bounds):
        asked.append(len(averages))
        return np.abs(averages).sum(axis=-1) + bounds

    assert greedy_weights(np.ones((1, 3)), np.ones(1), costs).tolist() == [1]
    assert asked == [1]


@pytest.mark.parametrize("most", [1, 2, MOST_PICKS])
def test_few_candidates_are_picked_and_their_shares_sum_to_one(most):
    held_out = HeldOut(zero_problem(50), np.arange(50))
    for seed in range(20):
        candidates = made_candidates(seed)
        choice = choose(candidates, held_out, "accurate", most)
        assert len(set(choice.picks)) == len(choice.picks) <= most
        assert sum(choice.shares) == pytest.approx(1)
        assert choice.shares == sorted(choice.shares, reverse=True)
        mean = sum(
            w * candidates[k].outputs for k, w in zip(choice.picks, choice.shares, strict=True)
        )
        np.testing.assert_allclose(choice.outputs, mean)


def test_slider_never_goes_the_wrong_way():
    held_out = HeldOut(zero_problem(50), np.arange(50))
    moved = 0
    for seed in range(40):
        candidates = made_candidates(seed)
        points = [
            loss_and_bound(choose(candidates, held_out, word), candidates, held_out)
            for word in ("accurate", "balanced", "provable")
        ]
        for (loss, bound), (next_loss, next_bound) in pairwise(points):
            assert loss <= next_loss * (1 + 1e-12)
            assert bound >= next_bound * (1 - 1e-12)
        moved += points[0] != points[-1]
        own = loss_and_bound(choose(candidates, held_out, 0.02), candidates, held_out)
        cost = np.log([loss for loss, _ in points]) + 0.02 * np.log1p([b for _, b in points])
        assert np.log(own[0]) + 0.02 * np.log1p(own[1]) <= cost.min() + 1e-12
    assert moved > 10


def test_words_of_the_slider_are_weights():
    assert [_bound_weight(word) for word in SELECTIONS] == list(SELECTIONS.values())
    assert SELECTIONS["accurate"] == 0 < SELECTIONS["balanced"] < SELECTIONS["provable"]
    assert _bound_weight(np.float32(0.5)) == 0.5


def test_loss_is_reported_as_users_know_it():
    outputs = np.array([[3.0], [4.0]])
    squared = HeldOut(zero_problem(2), np.arange(2))
    assert float(squared.reported(outputs)) == pytest.approx(np.sqrt(12.5))
    absolute = HeldOut(zero_problem(2, "absolute_error"), np.arange(2))
    assert float(absolute.reported(outputs)) == pytest.approx(3.5)
    assert squared.reported(np.stack([outputs, 2 * outputs])).shape == (2,)


def test_without_held_out_rows_the_last_candidate_is_the_model():
    candidates = made_candidates(0)
    choice = choose(candidates, None, "balanced")
    assert (choice.picks, choice.shares) == ([len(candidates) - 1], [1.0])


def test_pruning_is_refused_only_if_it_is_worse_beyond_a_standard_error():
    held_out = HeldOut(zero_problem(400), np.arange(400))
    usual = np.ones((400, 1))
    assert held_out.excess_loss(usual, usual) == 0
    assert held_out.excess_loss(1.1 * usual, usual) == pytest.approx(0.21)  # of every row: sure
    now_and_then = np.where(np.arange(400)[:, None] % 4 == 0, np.sqrt(1.84), 1.0)
    assert float(held_out.reported(now_and_then)) == pytest.approx(1.1)
    assert held_out.excess_loss(now_and_then, usual) == pytest.approx(
        0.21 - 0.84 * 0.433 / 20, 1e-3
    )


# Rows to choose on.


def test_validation_data_has_five_starts_that_see_all_rows():
    rng = np.random.default_rng(0)
    x, held = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    model = PSiLONRegressor(**ALL).fit(x, x[:, 0], validation_data=(held, held[:, 0]))
    assert model.net_.members == 5 * len(model.members_["weight"])
    # What is chosen on is the average of the starts, which is the model.
    assert model.held_out_score_ == pytest.approx(model.score(held, held[:, 0]), abs=1e-7)
    each = [member.weight for member in _first_layers(model.net_.parts[0].net)]
    assert all((a != b).any() for k, a in enumerate(each) for b in each[:k])
    fixed = PSiLONRegressor(**{**ALL, "reg_strength": 1e-3})
    fixed.fit(x, x[:, 0], validation_data=(held, held[:, 0]))
    assert fixed.net_.members == 5
    loss = np.mean((fixed.predict(held) - held[:, 0]) ** 2) / fixed.target_.scale[0] ** 2
    assert fixed.path_["valid_loss"] == pytest.approx([loss], rel=1e-6)


def _first_layers(net):
    return [net.member(k).layers[0] for k in range(5)]


def test_folds_and_groups_beside_validation_data_are_named():
    x, new = np.split(np.random.default_rng(0).normal(size=(69, 2)), [60])
    given, said = {"validation_data": (new, new[:, 0])}, "'groups' and 'cv' have no effect"
    with pytest.warns(HeldOutWarning, match=said):
        folds = PSiLONRegressor(**QUICK).fit(x, x[:, 0], **given)
    groups = PSiLONRegressor(**{**QUICK, "cv": None})
    with pytest.warns(HeldOutWarning, match=said):
        groups.fit(x, x[:, 0], groups=np.arange(60) % 4, **given)
    assert folds.net_.members == groups.net_.members == 5
    np.testing.assert_array_equal(folds.predict(x), groups.predict(x))


def test_validation_data_is_never_trained_on():
    frame, labels, _ = messy(120)
    held, held_labels, _ = messy(80, seed=1)
    # Other validation rows leave the very same networks.
    settings = {**QUICK, "cv": None, "designs": [Design(pieces=4, columns="clipped")]}
    first, other = (
        PSiLONClassifier(**settings).fit(frame, labels, validation_data=(rows, rows_labels))
        for rows, rows_labels in ((held, held_labels), (held[:30], held_labels[:30][::-1]))
    )
    assert first.temperature_ != other.temperature_
    assert first.measures_["training"].rows == other.measures_["training"].rows == 120
    for a, b in zip(first.net_.parts[0].net.layers, other.net_.parts[0].net.layers, strict=True):
        assert a.weight.equal(b.weight)
        assert a.bias.equal(b.bias)


def test_validation_rows_that_are_trained_on_are_counted():
    x, new = np.split(np.random.default_rng(0).normal(size=(90, 2)), [60])
    model = PSiLONRegressor(**{**QUICK, "cv": None})
    held = np.concatenate([new, x[:5]])
    for rows in (x, np.tile(x, (4, 1))):
        with pytest.warns(HeldOutWarning, match="5 of 35 rows of 'validation_data' are exact cop"):
            model.fit(rows, rows[:, 0], validation_data=(held, held[:, 0]))
    cells, held = (np.round(2 * v) for v in (x, new))
    assert set(map(tuple, cells)) & set(map(tuple, held))
    model.fit(cells, x[:, 1], validation_data=(held, new[:, 1]))  # and nothing is said


def test_validation_rows_choose():
    rng = np.random.default_rng(0)
    x, held = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    model = PSiLONRegressor(**ALL, selection="accurate")
    learnt = clone(model).fit(x, x[:, 0], validation_data=(held, held[:, 0]))
    against = clone(model).fit(x, x[:, 0], validation_data=(held, -held[:, 0]))
    assert learnt.n_iter_ == max(learnt.path_["steps"])
    assert against.n_iter_ == min(against.path_["steps"])  # what is learned does harm there
    assert against.held_out_score_ < 0 < learnt.held_out_score_


def test_held_out_score_is_that_of_the_given_rows():
    rng = np.random.default_rng(0)
    x, new = rng.normal(size=(80, 3)), rng.normal(size=(40, 3))
    for number in (x[:, 0], x[:, :2]):
        model = PSiLONRegressor(**{**QUICK, "cv": None})
        given = new[:, 0] if number.ndim == 1 else new[:, :2]
        model.fit(x, number, validation_data=(new, given))  # the net in use never saw these
        assert model.held_out_score_ == pytest.approx(model.score(new, given), rel=1e-5)
    for classes in (2, 3):
        labels, given = (np.digitize(v[:, 0], [-0.3, 0.3][: classes - 1]) for v in (x, new))
        model = PSiLONClassifier(**{**QUICK, "cv": None}, class_weight="balanced")
        model.fit(x, labels, validation_data=(new, given))
        assert model.held_out_score_ == pytest.approx(model.score(new, given))


def test_held_out_score_counts_weights_and_needs_held_out_rows():
    x = np.random.default_rng(0).normal(size=(60, 2))
    copies = np.repeat([1, 3], 30)
    chooses = PSiLONRegressor(**SMALL)
    split, rows = (np.arange(12, 60), np.arange(12)), np.repeat(np.arange(60), copies)
    same = tuple(np.flatnonzero(np.isin(rows, side)) for side in split)
    with pytest.warns(HeldOutWarning, match="12 of 60 rows are in no training part of 'cv'"):
        weighted = clone(chooses).set_params(cv=[split]).fit(x, x[:, 0], sample_weight=copies)
    with pytest.warns(HeldOutWarning, match="12 of 120 rows are in no training part"):
        repeated = clone(chooses).set_params(cv=[same]).fit(x[rows], x[rows, 0])
    assert weighted.held_out_score_ is not None
    assert weighted.held_out_score_ == repeated.held_out_score_
    assert (weighted.n_rows_, repeated.n_rows_) == (60, 120)
    with pytest.warns(HeldOutWarning):
        small = clone(chooses).set_params(cv=None).fit(x[:10], x[:10, 0])
    assert small.held_out_score_ is None
    one = PSiLONRegressor(**{**QUICK, "cv": None})
    one.fit(x[1:], x[1:, 0], validation_data=(x[:1], x[:1, 0]))
    assert one.held_out_score_ is None  # one row has no R^2


def test_validation_rows_without_a_loss_are_refused():
    x = np.random.default_rng(0).normal(size=(60, 2))
    given = {**QUICK, "cv": None}
    with pytest.raises(DivergedError, match="No member has a finite loss on the held-out rows"):
        PSiLONRegressor(**given).fit(x, x[:, 0], validation_data=(x[:5], np.full(5, 1e100)))
    weights = {0: 0, 1: 1, 2: 1}
    with pytest.raises(ValueError, match="must be of a class with a weight above 0"):
        PSiLONClassifier(**given, class_weight=weights).fit(
            x, np.arange(60) % 3, validation_data=(x[:5], np.zeros(5, dtype=int))
        )


# Small tables.


@pytest.mark.parametrize("n", [2, 3, 5, 12, 39, 40, 100])
def test_tiny_tables_fall_back_to_a_stated_strength(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 2))
    settings = {**SMALL, "cv": None, "max_steps": 30}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        regressor = PSiLONRegressor(**settings).fit(x, x[:, 0])
        classifier = PSiLONClassifier(**settings).fit(x, np.arange(n) % 2)
    assert [w.category for w in said] == [HeldOutWarning] * (2 if n < 40 else 0)
    for model in (regressor, classifier):
        assert model.net_.members == 5 * len(model.members_["weight"])
        assert (model.path_ is None) == (model.held_out_score_ is None) == (n < 40)
    if n < 40:
        assert regressor.members_["weight"] == [1.0]
        # 5e-3, and 20 times as much for so few rows.
        assert regressor.reg_strength_ == classifier.reg_strength_ == pytest.approx(0.1)
        assert "The strength is 0.1, the design is L1" in str(said[0].message)
        assert classifier.temperature_ == 1.0
    assert np.isfinite(regressor.predict(x)).all()


def test_small_tables_use_a_strength_that_was_given():
    x = np.random.default_rng(0).normal(size=(10, 2))
    for given, used in (([0.1, 1.0], 0.1), ([0.0, 1e-3], 1e-3), (0.3, 0.3), ("auto", 0.1)):
        model = PSiLONRegressor(**{**TWO, "reg_strength": given, "cv": None, "max_steps": 20})
        with pytest.warns(HeldOutWarning, match=f"The strength is {used:g}, the design is L1, and"):
            model.fit(x, x[:, 0])
        assert model.path_ is None
        assert model.designs_ == TWO["designs"][:1]
        assert model.reg_strength_ == pytest.approx(used)


def test_small_tables_are_chosen_on_if_folds_are_asked_for():
    x = np.random.default_rng(0).normal(size=(14, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PSiLONRegressor(**{**SMALL, "cv": 3}).fit(x, x[:, 0])
    assert model.held_out_score_ is not None
    assert model.net_.members == 3 * len(model.members_["weight"])


def test_folds_may_be_any_whole_number():
    frame, labels, _ = messy(60)
    model = PSiLONClassifier(**{**QUICK, "cv": np.int64(3)}).fit(frame, labels)
    expected = PSiLONClassifier(**{**QUICK, "cv": 3}).fit(frame, labels)
    assert model.held_out_score_ == expected.held_out_score_ is not None
    assert model.net_.members == 3


def test_five_folds_and_three_designs_are_the_default():
    x = np.random.default_rng(0).normal(size=(100, 2))
    model = PSiLONRegressor(width=8, depth=1, max_steps=10, random_state=0).fit(x, x[:, 0])
    assert model.net_.members == 5 * len(model.members_["weight"]) <= 20
    assert set(model.path_["design"]) == {0.0, 1.0, 2.0}
    assert {(d.columns, d.directions, d.pieces) for d in model.designs_} == {
        ("clipped", "l1", 1), ("log_tails", "l1", 16), ("log_tails", "l2", 16)
    }  # fmt: skip
