"""What a data scientist does with the estimators, on messy tables and with scikit-learn's tools."""

import datetime as dt
import pickle
import subprocess
import sys
import time
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.choosing import HeldOut
from psilonnet.estimators.fitting import LostNetworksWarning, Pick, Problem, train_on_all
from psilonnet.estimators.pruning import CUTS, _sparsest_good_cut
from psilonnet.nn import path_norm_penalty
from psilonnet.tables import LossWarning, OutOfRangeWarning, read_columns
from psilonnet.training import DivergedError, members_of, take_members

SMALL = {
    "width": 16, "depth": 1, "max_steps": 60, "learning_rate": 2e-2, "random_state": 0,
    "knots": 0, "selection": "best", "scaling": "standard", "validation": 0.2,
}  # fmt: skip
QUICK = {**SMALL, "reg_strength": 1e-3}


def messy(n=200, seed=0):
    """Return a frame with all kinds of columns and holes, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 12, n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "member": rng.random(n) > 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "grade": pd.Categorical(rng.choice(["a", "b"], n)),
            "same": 1.0,
        }
    )
    score = (frame.age - 40) / 12 + (frame.city == "Oslo") + frame.member - 0.8
    frame.loc[::17, "age"] = np.nan
    frame.loc[::19, "city"] = None
    return frame, np.where(score > 0, "yes", "no"), score.to_numpy()


@pytest.fixture(scope="module")
def fitted():
    frame, labels, score = messy()
    return PSiLONClassifier(**SMALL).fit(frame, labels), PSiLONRegressor(**SMALL).fit(frame, score)


def test_messy_frame_simply_works(fitted):
    classifier, regressor = fitted
    frame, labels, score = messy(seed=1)
    assert classifier.score(frame, labels) > 0.8
    assert regressor.score(frame, score) > 0.6
    assert classifier.predict_proba(frame).sum(axis=1) == pytest.approx(1)
    np.testing.assert_allclose(
        np.log(classifier.predict_proba(frame)), classifier.predict_log_proba(frame), atol=1e-9
    )
    np.testing.assert_array_equal(
        classifier.predict(frame) == "yes", classifier.decision_function(frame) > 0
    )


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames_give_the_same_model(make, fitted):
    frame, labels, _ = messy()
    other = PSiLONClassifier(**SMALL).fit(make(frame), labels)
    np.testing.assert_array_equal(other.predict_proba(make(frame)), fitted[0].predict_proba(frame))
    assert other.feature_names_in_.tolist() == list(frame.columns)


def test_object_arrays_and_lists_give_the_same_model():
    frame, labels, _ = messy()
    frame = frame[["age", "city", "member"]]
    table = frame.astype(object).to_numpy()
    array = PSiLONClassifier(**QUICK).fit(table, labels).predict_proba(table)
    listed = PSiLONClassifier(**QUICK).fit(table.tolist(), labels.tolist()).predict_proba(table)
    np.testing.assert_array_equal(array, listed)
    np.testing.assert_array_equal(
        array, PSiLONClassifier(**QUICK).fit(frame, labels).predict_proba(frame)
    )


def test_class_weights_move_predictions_as_sample_weights_do():
    frame, labels, _ = messy()
    plain = PSiLONClassifier(**QUICK, calibrate=False).fit(frame, labels)
    heavy = PSiLONClassifier(**QUICK, calibrate=False, class_weight={"yes": 5.0}).fit(frame, labels)
    rows = PSiLONClassifier(**QUICK, calibrate=False).fit(
        frame, labels, sample_weight=np.where(labels == "yes", 5.0, 1.0)
    )
    assert heavy.predict_proba(frame)[:, 1].mean() > plain.predict_proba(frame)[:, 1].mean()
    # The columns are scaled without class weights, so the two are close and not equal.
    np.testing.assert_allclose(heavy.predict_proba(frame), rows.predict_proba(frame), atol=0.2)
    rare = np.where(np.arange(len(labels)) % 5 == 0, "yes", "no")
    balanced = PSiLONClassifier(**QUICK, class_weight="balanced", calibrate=False).fit(frame, rare)
    assert 0.35 < balanced.predict_proba(frame)[:, 1].mean() < 0.65


@pytest.mark.parametrize("labels", [[3, 7, 11], [1.0, 2.0, 3.0], ["a", "b", "c"]])
def test_many_classes_of_any_type(labels):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    y = np.array(labels)[(x[:, 0] > -0.5).astype(int) + (x[:, 0] > 0.5)]
    model = PSiLONClassifier(**SMALL).fit(x, y)
    assert model.decision_function(x).shape == (150, 3)
    assert model.score(x, y) > 0.8
    assert model.predict(x).dtype == y.dtype


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
def test_several_targets_and_losses(loss):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3))
    y = np.stack([100 + 20 * x[:, 0], -x[:, 1]], axis=1)
    model = PSiLONRegressor(**QUICK, loss=loss).fit(x, y)
    assert model.predict(x).shape == (150, 2)
    assert model.score(x, y) > 0.7
    assert PSiLONRegressor(**QUICK).fit(x, y[:, :1]).predict(x).shape == (150, 1)


def test_constant_target_is_predicted():
    x = np.random.default_rng(0).normal(size=(40, 2))
    model = PSiLONRegressor(**QUICK).fit(x, np.full(40, 7.0))
    np.testing.assert_allclose(model.predict(x), 7.0, atol=0.5)


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


def test_columns_may_be_called_like_methods_of_frames():
    x = np.random.default_rng(0).normal(size=(40, 2))
    frame = pd.DataFrame(x, columns=["collect", "column_names"])
    model = PSiLONRegressor(**QUICK).fit(frame, x[:, 0])
    np.testing.assert_array_equal(model.predict(frame), model.predict(pl.DataFrame(frame)))


def test_validation_rows_have_the_weights_of_their_classes():
    frame, labels, _ = messy(120)
    held, held_labels, _ = messy(80, seed=1)
    weights = {label: 1.0 + 4 * k for k, label in enumerate(sorted(set(labels)))}
    model = PSiLONClassifier(**QUICK, class_weight=weights, calibrate=False)
    model.fit(frame, labels, validation_data=(held, held_labels))
    numbers = np.searchsorted(model.classes_, held_labels)
    losses = -model.predict_log_proba(held)[np.arange(len(held)), numbers]
    expected = np.average(losses, weights=[weights[label] for label in held_labels])
    assert model.path_["valid_loss"][0] == pytest.approx(expected, rel=1e-5)


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


def test_members_average_logits():
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    model = PSiLONClassifier(**QUICK, n_members=3, calibrate=False).fit(x, y)
    parts = []
    for member in range(3):
        alone = pickle.loads(pickle.dumps(model))
        alone.net_ = _member(model.net_, member)
        parts.append(alone.decision_function(x))
    np.testing.assert_allclose(np.mean(parts, axis=0), model.decision_function(x), atol=1e-9)
    assert np.std(parts, axis=0).max() > 1e-3


def _member(net, k):
    return take_members(net, torch.tensor([k]))


def test_pruning_leaves_zeros_and_says_so():
    x = np.random.default_rng(0).normal(size=(100, 5))
    settings = {**QUICK, "width": 64, "depth": 2, "max_steps": 150}
    model = PSiLONRegressor(**settings, prune=True).fit(x, x[:, 0])
    assert model.sparsity_ > 0.3
    assert PSiLONRegressor(**settings).fit(x, x[:, 0]).sparsity_ == 0
    assert "exact zeros" in model.summary()


def test_calibration_can_be_turned_off():
    frame, labels, _ = messy()
    assert PSiLONClassifier(**QUICK, calibrate=False).fit(frame, labels).temperature_ == 1.0
    strong = {**QUICK, "reg_strength": 0.1}  # small logits, which held-out rows refute
    assert PSiLONClassifier(**strong).fit(frame, labels).temperature_ < 0.9
    assert PSiLONClassifier(**strong, calibrate=False).fit(frame, labels).temperature_ == 1.0


def test_seed_decides_everything():
    frame, labels, _ = messy()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    a, b, c = (
        PSiLONClassifier(**{**SMALL, "random_state": seed}).fit(frame, labels) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a.predict_proba(frame), b.predict_proba(frame))
    assert (a.predict_proba(frame) != c.predict_proba(frame)).any()
    assert (torch.get_rng_state() == state).all()


def test_far_rows_warn_once(fitted):
    frame, _, _ = messy()
    with pytest.warns(OutOfRangeWarning, match=r"'age' \(1 rows\)") as caught:
        fitted[0].predict(frame.assign(age=[4000.0] + [40.0] * 199))
    assert len(caught) == 1


def test_new_levels_and_new_holes_are_predicted(fitted):
    frame, _, _ = messy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame["city"] = "Atlantis"
        frame["grade"] = None
        frame["joined"] = pd.NaT
        with pytest.warns(LossWarning, match=r"not among the levels of fit.*'Atlantis'"):
            assert np.isfinite(fitted[0].predict_proba(frame)).all()


def test_bounds_hold_in_raw_units(fitted):
    classifier, regressor = fitted
    frame, _, _ = messy(seed=2)
    frame = frame.dropna().reset_index(drop=True)
    rng = np.random.default_rng(0)
    moved = frame.assign(age=frame.age + rng.normal(size=len(frame)))
    for model, output in (
        (classifier, classifier.decision_function),
        (regressor, regressor.predict),
    ):
        before = output(frame)
        age, city = (list(frame.columns).index(name) for name in ("age", "city"))
        limit = model.feature_sensitivity_raw_[age] * np.abs(moved.age - frame.age)
        assert (np.abs(output(moved) - before) <= limit).all()
        elsewhere = frame.assign(city=rng.permutation(frame.city.to_numpy()))
        assert (np.abs(output(elsewhere) - before) <= model.feature_sensitivity_raw_[city]).all()
        assert model.feature_sensitivity_raw_[list(frame.columns).index("same")] == 0
        assert model.lipschitz_bound_ > 0
        assert "Proven" in model.summary()


def test_scikit_learn_tools_take_the_estimators():
    frame, labels, score = messy(120)
    numbers = frame[["age"]].fillna(40.0).assign(b=np.arange(120.0))
    search = GridSearchCV(PSiLONClassifier(**QUICK), {"width": [4, 8]}, cv=2)
    assert search.fit(frame, labels).best_params_["width"] in (4, 8)
    for output in ("pandas", "polars"):
        pipeline = make_pipeline(StandardScaler(), PSiLONRegressor(**QUICK))
        pipeline[0].set_output(transform=output)
        assert pipeline.fit(numbers, score).predict(numbers).shape == (120,)
        assert pipeline[-1].feature_names_in_.tolist() == ["age", "b"]
    mixed = ColumnTransformer([("n", StandardScaler(), ["age"])], remainder="passthrough")
    mixed.set_output(transform="pandas")
    assert (
        make_pipeline(mixed, PSiLONClassifier(**QUICK)).fit(frame, labels).score(frame, labels)
        > 0.5
    )


def test_processes_and_loky():
    frame, labels, _ = messy(80)
    model = PSiLONClassifier(**QUICK)
    both = cross_validate(model, frame, labels, cv=2, n_jobs=2)["test_score"]
    alone = cross_validate(model, frame, labels, cv=2)["test_score"]
    np.testing.assert_array_equal(both, alone)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        np.testing.assert_array_equal(cross_val_score(model, frame, labels, cv=2), alone)


def test_metadata_is_routed():
    frame, labels, _ = messy(80)
    weight, groups = np.random.default_rng(0).integers(1, 9, 80).astype(float), np.arange(80) // 4
    with sklearn.config_context(enable_metadata_routing=True):
        model = PSiLONClassifier(**QUICK).set_fit_request(sample_weight=True, groups=True)
        model.set_score_request(sample_weight=True)
        scores = cross_val_score(
            model, frame, labels, cv=GroupKFold(2),
            params={"sample_weight": weight, "groups": groups},
        )  # fmt: skip
        expected = [
            clone(model)
            .fit(frame.iloc[a], labels[a], sample_weight=weight[a], groups=groups[a])
            .score(frame.iloc[b], labels[b], sample_weight=weight[b])
            for a, b in GroupKFold(2).split(frame, labels, groups)
        ]
    np.testing.assert_array_equal(scores, expected)


def test_pickle_clone_and_page(fitted):
    frame, _, _ = messy()
    again = pickle.loads(pickle.dumps(fitted[0]))
    np.testing.assert_array_equal(again.predict_proba(frame), fitted[0].predict_proba(frame))
    assert not hasattr(clone(fitted[0]), "net_")
    assert "PSiLONClassifier" in fitted[0]._repr_html_()
    assert "n_members=3" in repr(PSiLONClassifier(n_members=3))


def test_history_has_curves(fitted):
    history = fitted[0].history_
    assert history["step"][-1] == 60
    assert len(history["train_loss"]) == len(history["valid_loss"]) == len(history["step"])
    assert fitted[0].n_iter_ == 60


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


def test_stopped_fit_leaves_no_half_of_a_model(monkeypatch):
    frame, labels, _ = messy(60)
    model = PSiLONClassifier(**QUICK).fit(frame, labels)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("psilonnet.estimators.base.train_on_all", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(frame[["age"]].assign(b=1.0 * np.arange(60)), labels)
    with pytest.raises(NotFittedError):
        model.predict(frame)


def test_torch_may_have_been_set_in_two_ways():
    """Other libraries set the precision of products so that torch refuses to tell it."""
    lines = [
        "import numpy as np, torch, psilonnet",
        "torch.set_float32_matmul_precision('medium')",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "x = np.arange(40.0).reshape(-1, 1)",
        "psilonnet.PSiLONRegressor(width=4, max_steps=2).fit(x, x[:, 0])",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


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


def test_the_sparsest_good_cut_is_taken_else_the_best():
    y = torch.zeros(4, 1)
    problem = Problem(y, y, torch.ones(4), torch.ones(4), loss="squared_error", outputs=1)

    def chosen(dense, *losses):
        usual, *rest = (np.full((4, 1), np.sqrt(loss)) for loss in (dense, *losses))
        outputs = dict(zip(CUTS, rest, strict=True))
        return CUTS.index(_sparsest_good_cut(outputs, usual, HeldOut(problem, np.arange(4))))

    assert chosen(1.0, 1.015, 0.999) == 0
    assert chosen(1.0, 1.03, 1.0) == 1
    assert chosen(1.0, 0.99, 0.9) == 1  # pruning may even help
    assert chosen(1.0, 1.2, 1.4) == 0


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


def test_batch_larger_than_the_table_needs_no_more_memory():
    x = np.random.default_rng(0).normal(size=(60, 2))
    small, large = (
        PSiLONRegressor(**{**QUICK, "batch_size": size}).fit(x, x[:, 0]) for size in (60, 10**9)
    )
    assert (small.predict(x) == large.predict(x)).all()


def test_names_that_are_not_words_are_checked_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)))  # names 0, 1 and 2
    model = PSiLONRegressor(**QUICK).fit(frame, frame[0])
    expected = model.predict(frame)
    assert (model.predict(frame.to_numpy()) == expected).all()
    for other in (frame[[2, 1, 0]], frame.rename(columns={0: 7})):
        with pytest.raises(ValueError, match=r"names and the order of fit, \['0', '1', '2'\]"):
            model.predict(other)
    model = PSiLONRegressor(**QUICK).fit(frame.to_numpy(), frame[0])
    assert (model.predict(frame) == expected).all()


def test_one_long_cell_takes_its_own_room_only():
    rng = np.random.default_rng(0)
    words = rng.choice(["ok", "bad", "late"], 1000).astype(object)
    words[7] = "x" * 100_000
    frame = pd.DataFrame({"a": rng.normal(size=1000), "note": words})
    tracemalloc.start()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 1}).fit(frame, frame.a, groups=words)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # a thousand times the longest would be 400 MB
    assert model.encoder_.codes[1].levels == ("bad", "late", "ok")


def test_many_columns_take_time_in_proportion():
    def seconds(columns):
        frame = pd.DataFrame(rng.normal(size=(30, columns))).add_prefix("c")
        model = PSiLONRegressor(**{**QUICK, "width": 4, "max_steps": 1}).fit(frame, frame.c0)
        begin = time.process_time()
        model.output_range(frame[:1], 0.1)
        model.summary()
        return time.process_time() - begin

    rng = np.random.default_rng(0)
    seconds(10)
    assert seconds(4000) < 30 * seconds(400)


def labels_of_all_types():
    yes = [True, False] * 30
    return {
        "object of bool": (pd.Series(yes, dtype=object), [False, True]),
        "nullable bool": (pd.Series(yes, dtype="boolean"), [False, True]),
        "category of bool": (pd.Series(yes, dtype="category"), [False, True]),
        "nullable int": (pd.Series([3, 1] * 30, dtype="Int64"), [1, 3]),
        "object of int": (np.array([3, 1] * 30, dtype=object), [1, 3]),
        "string": (pd.Series(["b", "a"] * 30, dtype="string"), ["a", "b"]),
        "polars": (pl.Series(["b", "a"] * 30), ["a", "b"]),
        "arrow": (pa.chunked_array([["b", "a"] * 30]), ["a", "b"]),
    }


@pytest.mark.parametrize("name", labels_of_all_types())
def test_labels_come_back_as_they_went_in(name):
    labels, classes = labels_of_all_types()[name]
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = PSiLONClassifier(**QUICK).fit(x, labels)
    assert model.classes_.tolist() == classes
    assert type(model.predict(x).tolist()[0]) is type(classes[0])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (pd.array(["y", None] * 30, dtype="string"), "Labels must not be missing"),
        (pd.Series([True, None] * 30, dtype="boolean"), "Labels must not be missing"),
        (pd.Series(["y", True] * 30), r"of one type.*\['bool', 'str'\]: turn all of them"),
    ],
)
def test_labels_that_are_none_are_refused(labels, said):
    with pytest.raises(ValueError, match=said):
        PSiLONClassifier(**QUICK).fit(np.random.default_rng(0).normal(size=(60, 2)), labels)


def test_unfitted_and_strange_inputs_are_named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    with pytest.raises(NotFittedError):
        PSiLONRegressor().summary()
    with pytest.raises(ValueError, match="must be numbers"):
        PSiLONRegressor(**QUICK).fit(frame, pd.date_range("2024-01-01", periods=60))
    mixed = frame.assign(b=[dt.date(2024, 1, 1), "unknown"] * 30)
    with pytest.raises(TypeError, match=r"'b' holds .* of type date among others: turn all of its"):
        PSiLONRegressor(**QUICK).fit(mixed, frame.a)
    huge = frame.assign(b=pd.Series([10**400, 1] * 30, dtype=object))
    with pytest.raises(ValueError, match="Column 'b' holds a larger one"):
        PSiLONRegressor(**QUICK).fit(huge, frame.a)


def test_tables_that_are_read_after_all():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60)})
    model = PSiLONRegressor(**QUICK).fit(frame.assign(cut=pd.cut(frame.a, 3)), frame.a)
    assert len(model.encoder_.codes[1].levels) == 3
    with pytest.warns(UserWarning, match="has no value in any row"):
        model = PSiLONRegressor(**QUICK).fit(frame.assign(e=np.nan), frame.a)
    assert (model.predict(frame.assign(e="x")) == model.predict(frame.assign(e=1.0))).all()
    wide = pl.DataFrame({"a": pl.Series(range(60), dtype=pl.Int128)})
    PSiLONRegressor(**QUICK).fit(wide, np.arange(60))
    masked = np.ma.masked_greater(rng.normal(size=(60, 2)), 1.0)
    model = PSiLONRegressor(**QUICK).fit(masked, frame.a)
    assert (model.predict(masked) == model.predict(masked.filled(np.nan))).all()


def test_networks_that_diverge_are_named_and_left_out():
    x = np.random.default_rng(0).normal(size=(60, 2))
    # The gradient of the bound of two outputs overflows with the second.
    model = PSiLONRegressor(**{**SMALL, "reg_strength": (1e-3, 3e38)})
    with pytest.warns(LostNetworksWarning, match="1 of 2 networks diverged in the choice"):
        model.fit(x, x)
    assert model.reg_strength_ == 1e-3
    problem = model._problem(read_columns(x), x, np.ones(60))
    design = model._design(0, 0, 60)
    picks = [Pick(design, strength, 0.25) for strength in (1e-3, 3e38, 1e-2)]
    training = train_on_all(problem, picks, n_members=2, prune=None)
    run = next(training).run()
    lost = pytest.warns(LostNetworksWarning, match="2 of 6 networks diverged in the last training")
    with lost, pytest.raises(StopIteration) as end:
        training.send(run)
    net, _, used = end.value.value
    assert members_of(net) == 4
    assert [(pick.strength, pick.weight) for pick in used] == [(1e-3, 0.5), (1e-2, 0.5)]
