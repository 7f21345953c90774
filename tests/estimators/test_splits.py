"""Which rows are held out: as they were given, no group parted, no class lost, never quietly."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from experiments.studies.repeated_rows import draw_rows
from psilonnet import PSiLONClassifier, PSiLONRegressor, load
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.splits import (
    GivenRows,
    NothingHeldOutError,
    make_splits,
    merge_within_sides,
)

SMALL = {
    "width": 16, "depth": 1, "max_steps": 30, "learning_rate": 2e-2, "random_state": 0,
    "knots": 0, "selection": "best", "scaling": "standard", "reg_strength": (1e-3, 1e-2),
}  # fmt: skip
QUICK = {**SMALL, "reg_strength": 1e-3}


def two_classes(n, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x, (x[:, 0] + 0.5 * np.random.default_rng(seed + 1).normal(size=n) > 0).astype(int)


def test_splits_are_stratified():
    strata = np.array([0] * 80 + [1] * 20)
    ((train, held),) = make_splits(strata, None, 0.2, 0)
    assert np.bincount(strata[held]).tolist() == [16, 4]
    assert len(train) + len(held) == 100
    assert (make_splits(strata, None, 0.2, 1)[0][1] != held).any()


@pytest.mark.parametrize("validation", [1e-4, 0.05, 0.2, 0.5, 0.999, 2, 3, 5, 10])
def test_no_training_lacks_a_class_and_no_group_is_parted(validation):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        groups = rng.permutation(np.repeat(np.arange(12), rng.integers(2, 30, 12)))
        groups = np.concatenate([groups, np.arange(12)])
        strata = rng.choice(3, len(groups), p=[0.7, 0.28, 0.02])
        strata[groups == 5] = 3  # a class of one group
        splits = make_splits(np.unique(strata, return_inverse=True)[1], groups, validation, seed)
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
        ((_, held),) = make_splits(strata, groups, 0.2, seed)
        assert len(set(groups[held][strata[held] == 1])) == 1


def test_a_large_group_is_not_held_out_for_a_small_fraction():
    groups = np.concatenate([np.zeros(1000, dtype=int), 1 + np.arange(50) // 10])
    for seed in range(20):
        ((train, held),) = make_splits(np.zeros(1050, dtype=int), groups, 0.2, seed)
        assert len(held) == 50
        assert len(train) == 1000


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
    for validation in (0.2, 5):
        with pytest.raises(NothingHeldOutError, match=reason):
            make_splits(strata, groups, validation, 0)


def test_equal_rows_are_merged_within_a_side_only():
    distinct = np.array([0, 0, 0, 1, 1])
    zeros = np.zeros(5, dtype=int)
    given = GivenRows(np.arange(5), distinct, np.array([1.0, 2, 4, 8, 16]), zeros, None, 0, 5)
    merged = merge_within_sides(given, [(np.array([0, 1, 3]), np.array([2, 4]))])
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


def test_copies_and_weights_are_equal_where_nothing_is_dealt():
    x, y = two_classes(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    repeated = np.random.default_rng(2).permutation(np.repeat(np.arange(60), times))
    held_out = two_classes(30, seed=5)

    def fitted(weighted, *, validation=0.2, **fit):
        rows = (x, y) if weighted else (x[repeated], y[repeated])
        fit |= {"sample_weight": times} if weighted else {}
        settings = {**SMALL, "validation": validation}
        return PSiLONClassifier(**settings).fit(*rows, **fit).predict_proba(x)

    with_rows = [fitted(w, validation_data=held_out) for w in (True, False)]
    np.testing.assert_array_equal(*with_rows)
    own = [(np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k))
           for k in range(3)]  # fmt: skip
    same = [tuple(np.flatnonzero(np.isin(repeated, side)) for side in split) for split in own]
    with_splits = [fitted(True, validation=own), fitted(False, validation=same)]
    np.testing.assert_array_equal(*with_splits)
    nothing = {**QUICK, "calibrate": False}
    weighted = PSiLONClassifier(**nothing).fit(x, y, sample_weight=times).predict_proba(x)
    listed = PSiLONClassifier(**nothing).fit(x[repeated], y[repeated]).predict_proba(x)
    np.testing.assert_array_equal(weighted, listed)


def test_a_row_is_never_parted_whatever_its_weight():
    x, y = two_classes(200)
    weight = np.ones(200)
    weight[7] = 500.0
    model = PSiLONClassifier(**SMALL).fit(x, y, sample_weight=weight)
    seen = model.held_out_score_ * 40  # right ones, if row 7 is not among them
    heavy = model.held_out_score_ * 539
    assert min(abs(seen - round(seen)), abs(heavy - round(heavy))) < 1e-6


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


@pytest.mark.parametrize("validation", [0.2, 5])
def test_choosing_goes_on_with_a_class_of_one_row_and_with_few_distinct_rows(validation):
    x, y = two_classes(60)
    y[0] = 2
    model = PSiLONClassifier(**{**SMALL, "validation": validation}).fit(x, y)
    assert model.path_ is not None
    assert model.held_out_score_ > 0.5
    coarse = np.arange(2000)[:, None] % 12
    labels = (np.random.default_rng(0).random(2000) < coarse[:, 0] / 12).astype(int)
    model = PSiLONClassifier(**{**SMALL, "validation": validation}).fit(coarse, labels)
    assert model.path_ is not None


def test_groups_with_unlucky_classes_are_chosen_on_with_every_seed():
    x, _ = two_classes(100)
    y = np.zeros(100, dtype=int)
    y[:8] = 1  # in two groups
    groups = np.arange(100) // 4
    for seed in range(12):
        model = PSiLONClassifier(**{**QUICK, "random_state": seed, "max_steps": 5, "validation": 5})
        assert model.fit(x, y, groups=groups).held_out_score_ is not None


@pytest.mark.parametrize("kind", [PSiLONClassifier, PSiLONRegressor])
def test_a_table_too_small_to_choose_on_says_so(kind):
    x, y = two_classes(39)
    with pytest.warns(HeldOutWarning, match=r"39 rows, and 40 are needed\. The strength is 0\.01"):
        model = kind(**SMALL).fit(x, y)
    assert model.path_ is None
    assert model.held_out_score_ is None
    with warnings.catch_warnings():  # where nothing is chosen there is nothing to say
        warnings.simplefilter("error")
        PSiLONRegressor(**QUICK).fit(x, y)
        PSiLONClassifier(**QUICK, calibrate=False).fit(x, y)
        model = kind(**SMALL).fit(*two_classes(40))
    assert model.held_out_score_ is not None


def test_splits_of_ones_own_hold_for_small_tables_and_are_kept_in_files(tmp_path):
    x, y = two_classes(12)
    splits = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    model = PSiLONClassifier(**{**SMALL, "validation": splits}).fit(x, y)
    assert model.path_ is not None
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    for mine, theirs in zip(splits, loaded.validation, strict=True):
        assert [list(side) for side in mine] == [list(side) for side in theirs]
    assert loaded.fit(x, y).held_out_score_ == model.held_out_score_


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ([(range(8), range(7, 12))], "no row on both sides. Split 0 is not"),
        ([(range(8), range(8, 12)), (range(8), [12])], "from 0 to 11.* Split 1 is not"),
        ([(range(8), [0.5])], "pair of positions"),
        ([(range(8), np.arange(0))], "must hold out some rows"),
        ([([0], range(1, 12))], "rows of every class"),
        ([range(8)], "must be a fraction"),
        ([], "must be a fraction"),
    ],
)
def test_wrong_splits_are_named(splits, said):
    x, y = two_classes(12)
    with pytest.raises(ValueError, match=said):
        PSiLONClassifier(**{**SMALL, "validation": splits}).fit(x, y)


def test_copied_rows_are_named_and_natural_repeats_are_not():
    x, y = two_classes(200)
    rng = np.random.default_rng(0)
    bootstrapped = rng.integers(0, 200, 200)
    rare = np.flatnonzero(y == 1)[:20]
    oversampled = np.concatenate([np.arange(200), np.repeat(rare, 5)])
    for rows in (bootstrapped, oversampled, np.tile(np.arange(200), 2)):
        with pytest.warns(HeldOutWarning, match=r"rows are exact copies of other rows.*'groups'"):
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
    with pytest.warns(HeldOutWarning, match="asks for 5 folds. Only 3 can be held out"):
        model = PSiLONRegressor(**{**SMALL, "validation": 5}).fit(x, y, groups=np.arange(60) % 3)
    assert model.held_out_score_ is not None


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
    y[:2], y[2:4] = 1, 2
    model = PSiLONClassifier(**SMALL, class_weight={0: 0.0})
    with pytest.warns(HeldOutWarning, match="classes of weight 0"):
        model.fit(x, y)
    assert np.isfinite(model.predict_proba(x)).all()
