"""What a data scientist does with the estimators, on messy tables and with scikit-learn's tools."""

import pickle
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.messy import QUICK, SMALL, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators.progress import Progress


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
    assert "cv=3" in repr(PSiLONClassifier(cv=3))


def test_history_has_curves(fitted):
    history = fitted[0].history_
    assert history["step"][-1] == 60
    assert len(history["train_loss"]) == len(history["valid_loss"]) == len(history["step"])
    # The mean over the folds of the losses of the averaged weights, as the snapshots have them.
    assert fitted[0].n_iter_ in history["step"]
    snapshots = zip(fitted[0].path_["steps"], fitted[0].path_["valid_loss"], strict=True)
    curve = dict(zip(history["step"], history["valid_loss"], strict=True))
    for step, loss in snapshots:
        assert curve[step] == pytest.approx(loss, rel=1e-3)


@pytest.mark.parametrize("prune", [False, True])
def test_stopped_fit_leaves_no_half_of_a_model(prune, monkeypatch, capsys):
    frame, labels, _ = messy(60)
    model = PSiLONClassifier(**QUICK, prune=prune).fit(frame, labels)
    steps, step = iter(range(1000)), Progress.step

    def press(progress):
        step(progress)
        if next(steps) == (70 if prune else 30):  # in the midst of a path, or of pruning
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Progress, "step", press)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(verbose=True).fit(frame[["age"]].assign(b=1.0 * np.arange(60)), labels)
    assert next(steps) == (71 if prune else 31)
    assert "held-out rows" not in capsys.readouterr().err  # the bar is closed without a score
    with pytest.raises(NotFittedError):
        model.predict(frame)
    with pytest.raises(NotFittedError):
        model.with_selection("accurate")
    left = {"held_out_score_", "measures_", "members_", "path_", "temperature_", "_known_errors"}
    assert not left & set(vars(model))


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


def test_batch_larger_than_the_table_needs_no_more_memory():
    x = np.random.default_rng(0).normal(size=(60, 2))
    small, large = (
        PSiLONRegressor(**{**QUICK, "batch_size": size}).fit(x, x[:, 0]) for size in (60, 10**9)
    )
    assert (small.predict(x) == large.predict(x)).all()


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
