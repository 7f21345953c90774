"""Which rows are held out: as they were given, no group parted, no class lost, never quietly."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit

from experiments.studies.repeated_rows import draw_rows
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor, load
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.folds import (
    Folds,
    GivenRows,
    NothingHeldOutError,
    _hold_out,
    _merge_within_sides,
    deal_folds,
    make_splits,
    splits_of,
)
from psilonnet.estimators.problem import Problem

SMALL = {
    "width": 16, "depth": 1, "max_steps": 30, "learning_rate": 2e-2, "random_state": 0,
    "designs": [Design()], "reg_strength": (1e-3, 1e-2),
}  # fmt: skip
QUICK = {**SMALL, "reg_strength": 1e-3}


def two_classes(n, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x, (x[:, 0] + 0.5 * np.random.default_rng(seed + 1).normal(size=n) > 0).astype(int)


def given_rows(strata, groups=None, *, weight=None, position=None, table_rows=None):
    """Return rows that are all different."""
    n = len(strata)
    return GivenRows(
        np.arange(n) if position is None else position,
        np.arange(n), np.ones(n) if weight is None else weight, strata, groups, 0, table_rows or n,
    )  # fmt: skip


def test_splits_are_stratified():
    strata = np.array([0] * 80 + [1] * 20)
    for train, held in make_splits(strata, None, 5, 0):
        assert np.bincount(strata[held]).tolist() == [16, 4]
        assert len(train) + len(held) == 100
    assert (make_splits(strata, None, 5, 1)[0][1] != make_splits(strata, None, 5, 0)[0][1]).any()


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
def test_no_training_lacks_a_class_and_no_group_is_parted(folds):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups = rng.permutation(np.repeat(np.arange(12), rng.integers(2, 30, 12)))
        groups = np.concatenate([groups, np.arange(12)])
        strata = rng.choice(3, len(groups), p=[0.7, 0.28, 0.02])
        strata[groups == 5] = 3  # a class of one group
        splits = make_splits(np.unique(strata, return_inverse=True)[1], groups, folds, seed)
        for train, held in splits:
            assert set(strata[train]) == set(strata)
            assert len(held) > 0
            assert not set(groups[train]) & set(groups[held])
            assert sorted([*train, *held]) == list(range(len(strata)))
        everything = np.concatenate([held for _, held in splits])
        assert len(set(everything)) == len(everything)


def test_groups_are_dealt_by_their_rarest_class():
    groups = np.repeat(np.arange(30), 4)
    strata = np.zeros(120, dtype=int)
    strata[groups < 5] = 1
    for seed in range(20):
        for _, held in make_splits(strata, groups, 5, seed):
            assert len(set(groups[held][strata[held] == 1])) == 1


@pytest.mark.parametrize(
    ("strata", "groups", "reason"),
    [
        (np.zeros(39, dtype=int), None, "39 rows"),
        (np.zeros(50, dtype=int), np.zeros(50, dtype=int), "one group"),
        (np.arange(50), None, "50 rows is the only one of some class"),
        (np.arange(60) % 2, np.arange(60) % 2, "2 groups is the only one of some class"),
    ],
)
def test_the_reason_is_told_when_nothing_can_be_held_out(strata, groups, reason):
    with pytest.raises(NothingHeldOutError, match=reason):
        _hold_out(given_rows(strata, groups), None, 0)


def test_folds_that_are_asked_for_are_made_of_small_tables_too():
    given = given_rows(np.zeros(7, dtype=int))
    assert sorted(len(held) for _, held in _hold_out(given, 3, 0)) == [2, 2, 3]
    assert len(_hold_out(given, 7, 0)) == 7
    with pytest.warns(HeldOutWarning, match=r"'cv' parameter asks for 9 folds\. Only 7 "):
        assert len(_hold_out(given, 9, 0)) == 7


def test_equal_rows_are_merged_within_a_side_only():
    distinct = np.array([0, 0, 0, 1, 1])
    zeros = np.zeros(5, dtype=int)
    given = GivenRows(np.arange(5), distinct, np.array([1.0, 2, 4, 8, 16]), zeros, None, 0, 5)
    merged = _merge_within_sides(given, [(np.array([0, 1, 3]), np.array([2, 4]))])
    rows, weight, ((train, held),) = merged
    assert sorted(zip(rows[train], weight[train], strict=True)) == [(0, 3.0), (1, 8.0)]
    assert sorted(zip(rows[held], weight[held], strict=True)) == [(0, 4.0), (1, 16.0)]


@pytest.mark.long
def test_held_out_score_of_a_table_of_few_distinct_rows_is_that_of_unseen_rows():
    # Dealt after merging, the two scores were 0.4 apart; see experiments/studies/repeated_rows.py.
    settings = {**SMALL, "width": 64, "depth": 2, "max_steps": 500, "learning_rate": 4e-3}
    settings["reg_strength"] = (1e-4, 1e-3)
    said, true, losses = [], [], []
    for seed in range(2):
        model = PSiLONClassifier(**settings).fit(*draw_rows(seed, 2000, "two", unseen=False))
        x, y = draw_rows(seed, 10_000, "two", unseen=True)
        said.append(model.held_out_score_)
        true.append(model.score(x, y))
        losses.append(log_loss(y, model.predict_proba(x)))
    assert np.mean(said) == pytest.approx(np.mean(true), abs=0.04)
    assert np.mean(losses) < 0.45


def test_outputs_of_held_out_rows_are_averaged_over_the_networks_that_never_saw_them():
    nothing = torch.zeros(5, 1)
    problem = Problem(nothing, nothing, nothing[:, 0], nothing[:, 0], nothing[0] == 0, "huber", 1)
    splits = [(np.array([0]), np.array([1, 3])), (np.array([1]), np.array([3, 4]))]
    folds = Folds(problem, splits)
    assert folds.held.tolist() == [1, 3, 4]
    outputs = folds.average([np.array([[1.0], [2.0]]), np.array([[6.0], [8.0]])])
    assert outputs.tolist() == [[1.0], [4.0], [8.0]]


def test_copies_and_weights_are_equal_where_nothing_is_dealt():
    x, y = two_classes(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(60), times))
    held_out = two_classes(30, seed=5)

    def fitted(weighted, *, cv=None, **fit):
        rows = (x, y) if weighted else (x[repeated], y[repeated])
        fit |= {"sample_weight": times} if weighted else {}
        return PSiLONClassifier(**{**SMALL, "cv": cv}).fit(*rows, **fit).predict_proba(x)

    with_rows = [fitted(w, validation_data=held_out) for w in (True, False)]
    np.testing.assert_array_equal(*with_rows)
    own = [(np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k))
           for k in range(3)]  # fmt: skip
    same = [tuple(np.flatnonzero(np.isin(repeated, side)) for side in split) for split in own]
    with_splits = [fitted(True, cv=own), fitted(False, cv=same)]
    np.testing.assert_array_equal(*with_splits)
    few, few_times = x[:20], times[:20]  # too few to hold any out: five starts
    listed = np.repeat(np.arange(20), few_times)
    model = PSiLONClassifier(**SMALL)
    with pytest.warns(HeldOutWarning):
        weighted = clone(model).fit(few, y[:20], sample_weight=few_times).predict_proba(x)
    with pytest.warns(HeldOutWarning):
        copied = clone(model).fit(few[listed], y[:20][listed]).predict_proba(x)
    np.testing.assert_array_equal(weighted, copied)


def test_a_row_is_never_parted_whatever_its_weight():
    x, y = two_classes(60)
    weight = np.ones(60)
    weight[7] = 500.0
    given = given_rows(y, weight=weight)
    for _, held in _hold_out(given, 5, 0):
        assert (held == 7).sum() <= 1
    ones, y = torch.ones(60), torch.as_tensor(y)[:, None].float()
    problem = Problem(
        torch.as_tensor(x), y, torch.as_tensor(weight).float(), torch.as_tensor(weight),
        torch.ones(3, dtype=torch.bool), "binary_cross_entropy", 1,
    )  # fmt: skip
    folds = deal_folds(problem, given, 5, 0)
    assert sorted(folds.problem.counts.tolist()) == [*ones[1:].tolist(), 500.0]
    assert folds.held.tolist() == list(range(60))
    heavy = int(folds.problem.counts.argmax())
    assert sum(heavy in held for _, held in folds.splits) == 1


def test_the_order_of_rows_does_not_matter():
    x, y = draw_rows(0, 300, "two", unseen=False)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    groups = np.arange(300) // 3
    order = np.random.default_rng(3).permutation(300)
    for extra in ({}, {"sample_weight": weight}, {"groups": groups}):
        there = PSiLONClassifier(**SMALL).fit(x, y, **extra).predict_proba(x)
        moved = {name: values[order] for name, values in extra.items()}
        back = PSiLONClassifier(**SMALL).fit(x[order], y[order], **moved).predict_proba(x)
        np.testing.assert_array_equal(there, back)


@pytest.mark.parametrize("cv", [2, 5])
def test_choosing_goes_on_with_a_class_of_one_row_and_with_few_distinct_rows(cv):
    x, y = two_classes(60)
    y[0] = 2
    model = PSiLONClassifier(**{**SMALL, "cv": cv}).fit(x, y)
    assert model.path_ is not None
    assert model.held_out_score_ > 0.5
    coarse = np.arange(2000)[:, None] % 12
    labels = (np.random.default_rng(0).random(2000) < coarse[:, 0] / 12).astype(int)
    model = PSiLONClassifier(**{**SMALL, "cv": cv}).fit(coarse, labels)
    assert model.path_ is not None


def test_groups_with_unlucky_classes_are_chosen_on_with_every_seed():
    x, _ = two_classes(100)
    y = np.zeros(100, dtype=int)
    y[:8] = 1  # in two groups
    groups = np.arange(100) // 4
    for seed in range(12):
        model = PSiLONClassifier(**{**QUICK, "random_state": seed, "max_steps": 5})
        assert model.fit(x, y, groups=groups).held_out_score_ is not None


@pytest.mark.parametrize("kind", [PSiLONClassifier, PSiLONRegressor])
def test_a_table_too_small_to_choose_on_says_so(kind):
    x, y = two_classes(39)
    said = r"39 rows, and 40 are needed\. The strength is 0\.01, .*or a number of folds as 'cv'"
    with pytest.warns(HeldOutWarning, match=said):
        model = kind(**SMALL).fit(x, y)
    assert model.path_ is None
    assert model.held_out_score_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kind(**SMALL, cv=2).fit(x, y).held_out_score_ is not None
        assert kind(**SMALL).fit(*two_classes(40)).held_out_score_ is not None


def test_splits_of_ones_own_hold_for_small_tables():
    x, y = two_classes(12)
    splits = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PSiLONClassifier(**SMALL, cv=splits).fit(x, y)
    assert model.path_ is not None
    assert model.measures_["held_out"].rows == 8
    assert model.net_.members == 2 * len(model.members_["weight"])


@pytest.mark.parametrize(
    ("cv", "kept"), [(3, 3), (None, None), (KFold(3), None), ([(range(30), range(30, 60))], None)]
)
def test_files_keep_a_number_of_folds_but_no_rows(cv, kept, tmp_path):
    x, y = two_classes(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PSiLONClassifier(**{**QUICK, "max_steps": 5}, cv=cv).fit(x, y).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.cv == kept
    loaded.fit(x, y)


@pytest.mark.parametrize("kind", ["splitter", "list", "generator"])
def test_splits_may_be_given_in_all_ways_of_scikit_learn(kind):
    x, y = two_classes(60)
    splitter = KFold(3, shuffle=True, random_state=1)
    cv = {
        "splitter": splitter,
        "list": [(a.tolist(), b.tolist()) for a, b in splitter.split(x, y)],
        "generator": splitter.split(x, y),
    }[kind]
    expected = PSiLONClassifier(**SMALL, cv=list(splitter.split(x, y))).fit(x, y)
    model = PSiLONClassifier(**SMALL, cv=cv).fit(x, y)
    np.testing.assert_array_equal(model.predict_proba(x), expected.predict_proba(x))
    assert model.held_out_score_ == expected.held_out_score_
    assert model.net_.members == 3 * len(model.members_["weight"])
    if kind == "generator":
        with pytest.raises(ValueError, match=r"Got none: an iterator can be used once only, so gi"):
            model.fit(x, y)
    else:
        np.testing.assert_array_equal(model.fit(x, y).predict_proba(x), expected.predict_proba(x))


def test_group_splitters_get_the_groups():
    x, y = two_classes(60)
    groups = np.arange(60) % 6
    splits = splits_of(GroupKFold(3), y, groups)
    for train, held in splits:
        assert not set(groups[train]) & set(groups[held])
    model = PSiLONRegressor(**SMALL, cv=GroupKFold(3)).fit(x, y, groups=groups)
    expected = PSiLONRegressor(**SMALL, cv=splits).fit(x, y)
    np.testing.assert_array_equal(model.predict(x), expected.predict(x))
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        PSiLONRegressor(**SMALL, cv=GroupKFold(3)).fit(x, y)


def test_rows_that_no_network_learns_from_are_counted():
    x, y = two_classes(60)
    said = r"10 of 60 rows are in no training part of 'cv', so no network learns from them.*an int"
    with pytest.warns(HeldOutWarning, match=said):
        model = PSiLONRegressor(**SMALL, cv=TimeSeriesSplit(5)).fit(x, y)
    assert model.net_.members == 5 * len(model.members_["weight"])
    assert model.measures_["held_out"] is not None
    with pytest.warns(HeldOutWarning, match="15 of 60 rows are in no training part"):
        PSiLONRegressor(**SMALL, cv=ShuffleSplit(1, test_size=0.25, random_state=0)).fit(x, y)


def test_no_network_learns_from_the_rows_held_out_from_it():
    x, _ = two_classes(60)
    y = x[:, 0]
    split = [(np.arange(40), np.arange(40, 60))]
    with pytest.warns(HeldOutWarning, match="20 of 60 rows"):
        model = PSiLONRegressor(**{**QUICK, "max_steps": 60}, cv=split).fit(x, y)
    spoiled = np.where(np.arange(60) < 40, y, -y)
    with pytest.warns(HeldOutWarning, match="20 of 60 rows"):
        other = PSiLONRegressor(**{**QUICK, "max_steps": 60}, cv=split).fit(x, spoiled)
    assert model.held_out_score_ > 0.5
    assert other.held_out_score_ < 0
    # The target is centred and scaled on all rows, so that the two differ a little.
    assert np.corrcoef(model.predict(x), other.predict(x))[0, 1] > 0.9


def test_positions_are_those_of_the_given_rows():
    """Rows of weight zero and equal rows have positions of their own."""
    x, y = two_classes(30)
    rows = np.concatenate([np.arange(30), np.arange(10)])  # the first ten twice
    sides = [(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]
    model = PSiLONClassifier(**SMALL, cv=sides).fit(x[rows], y[rows])
    assert model.measures_["held_out"].rows == 40
    # The same with rows of weight zero between them.
    place = np.sort(np.random.default_rng(0).permutation(55)[:40])
    table, labels, weight = np.full((55, 3), 7.0), np.ones(55, dtype=int), np.zeros(55)
    table[place], labels[place], weight[place] = x[rows], y[rows], 1.0
    moved = [(place[a], place[b]) for a, b in sides]
    other = PSiLONClassifier(**SMALL, cv=moved).fit(table, labels, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(x), other.predict_proba(x))
    assert model.held_out_score_ == other.held_out_score_
    # A splitter deals all rows of the table, those of weight zero included.
    dealt = PSiLONClassifier(**SMALL, cv=KFold(2)).fit(table, labels, sample_weight=weight)
    listed = list(KFold(2).split(table))
    listed = PSiLONClassifier(**SMALL, cv=listed).fit(table, labels, sample_weight=weight)
    np.testing.assert_array_equal(dealt.predict_proba(x), listed.predict_proba(x))


def test_equal_rows_on_both_sides_keep_their_parts():
    distinct = np.array([0, 1, 0, 1])
    given = GivenRows(
        np.arange(4), distinct, np.array([1.0, 2, 3, 4]), np.zeros(4, int), None, 0, 4
    )
    x = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    counts = torch.tensor([4.0, 6.0], dtype=torch.float64)
    problem = Problem(x, x.float(), counts.float(), counts, x[0] == 0, "squared_error", 1)
    splits = [(np.array([0, 1]), np.array([2, 3])), (np.array([2, 3]), np.array([0, 1]))]
    folds = deal_folds(problem, given, splits, 0)
    assert folds.problem.x[:, 0].tolist() == [0, 0, 1, 1]
    assert sorted(folds.problem.counts.tolist()) == [1, 2, 3, 4]
    for train, held in folds.splits:
        assert sorted(folds.problem.x[train, 0].tolist()) == [0, 1]
        assert not set(train) & set(held)
    assert {tuple(folds.problem.counts[train].tolist()) for train, _ in folds.splits} == {
        (1.0, 2.0), (3.0, 4.0)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ([(range(8), range(7, 12))], "no row twice or on both sides. Split 0 is not"),
        ([([0, 0, 1, 2], range(7, 12))], "no row twice or on both sides. Split 0 is not"),
        ([(range(8), range(8, 12)), (range(8), [12])], "from 0 to 11.* Split 1 is not"),
        ([(range(8), [0.5])], "pair of positions"),
        ([(range(8), np.arange(0))], "must hold out some rows"),
        ([([0], range(1, 12))], "rows of every class"),
        ([range(8)], "pair of positions"),
        ([(range(8),)], "pair of positions"),
        ([(range(4), range(4, 8), range(8, 12))], "pair of positions"),
        ([7], "pair of positions"),
        ([(np.arange(12) < 8, np.arange(12) >= 8)], r"give numpy.flatnonzero\(mask\) for each"),
        ([], "at least one split"),
    ],
)
def test_wrong_splits_are_named(splits, said):
    x, y = two_classes(12)
    with pytest.raises(ValueError, match=said):
        PSiLONClassifier(**SMALL, cv=splits).fit(x, y)


def test_copied_rows_are_named_and_natural_repeats_are_not():
    x, y = two_classes(200)
    rng = np.random.default_rng(0)
    bootstrapped = rng.integers(0, 200, 200)
    rare = np.flatnonzero(y == 1)[:20]
    oversampled = np.concatenate([np.arange(200), np.repeat(rare, 5)])
    four_times = np.tile(np.arange(50), 4)
    for rows in (bootstrapped, oversampled, np.tile(np.arange(200), 2), four_times):
        with pytest.warns(HeldOutWarning, match=r"exact copies of other rows.*Drop.*'groups'"):
            PSiLONClassifier(**SMALL).fit(x[rows], y[rows])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            PSiLONClassifier(**SMALL).fit(x[rows], y[rows], groups=rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PSiLONClassifier(**SMALL).fit(*draw_rows(0, 300, "two", unseen=False))
        PSiLONClassifier(**SMALL).fit(x, y, sample_weight=rng.integers(1, 5, 200))


def test_fewer_groups_than_folds_are_said():
    x, y = two_classes(60)
    with pytest.warns(HeldOutWarning, match="By default there are 5 folds. Only 3 can be held"):
        model = PSiLONRegressor(**SMALL).fit(x, y, groups=np.arange(60) % 3)
    with pytest.warns(HeldOutWarning, match="'cv' parameter asks for 4 folds. Only 3 can be held"):
        PSiLONRegressor(**SMALL, cv=4).fit(x, y, groups=np.arange(60) % 3)
    assert model.held_out_score_ is not None
    assert model.net_.members == 3 * len(model.members_["weight"])


def test_missing_groups_are_refused():
    x, y = two_classes(60)
    labels = pd.Series(["a", "b", None] * 20)
    for groups in (labels, labels.to_numpy(), np.where(np.arange(60) < 3, np.nan, 1.0)):
        with pytest.raises(ValueError, match="'groups' must not be missing"):
            PSiLONRegressor(**SMALL).fit(x, y, groups=groups)
    with pytest.raises(ValueError, match="one label per row"):
        PSiLONRegressor(**SMALL).fit(x, y, groups=np.zeros((60, 2)))


def test_held_out_rows_of_classes_without_weight_choose_nothing():
    x, _ = two_classes(60)
    y = np.zeros(60, dtype=int)
    y[0], y[1] = 1, 2  # never held out
    model = PSiLONClassifier(**SMALL, class_weight={0: 0.0})
    with pytest.warns(HeldOutWarning, match="classes of weight 0"):
        model.fit(x, y)
    assert np.isfinite(model.predict_proba(x)).all()
