"""What a model says of itself before any proof: its scores, and that it says one thing only."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss, r2_score, roc_auc_score

import psilonnet
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy import ModelFileError, read_model_file, write_model_file
from psilonnet.estimators import HeldOutWarning
from psilonnet.estimators.measures import (
    ClassMeasures,
    NumberMeasures,
    _area_under_curve,
    class_measures,
    number_measures,
)

TINY = {
    "width": 8,
    "depth": 1,
    "max_steps": 100,
    "learning_rate": 2e-2,
    "random_state": 0,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
}


def dense(measured):
    classes = len(measured.labels)
    matrix = np.zeros((classes, classes))
    matrix[measured.given, measured.predicted] = measured.weight
    return matrix


@pytest.mark.parametrize("classes", [2, 5])
def test_measures_of_classes_are_those_of_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    proba = np.repeat(rng.dirichlet(np.ones(classes), 40), 2, axis=0)  # with ties
    y, predicted = rng.integers(0, classes, 80), proba.argmax(axis=1)
    weight = rng.integers(1, 4, 80).astype(float)
    labels = list("abcde")[:classes]
    found = class_measures(labels, np.log(proba), predicted, y, weight)
    score = proba[:, 1] if classes == 2 else proba
    each = [roc_auc_score(y == k, proba[:, k], sample_weight=weight) for k in range(classes)]
    expected = np.mean(each[1:] if classes == 2 else each)
    assert found.auc == pytest.approx(expected)
    assert class_measures(labels, np.log(proba), predicted, y).auc == pytest.approx(
        roc_auc_score(y, score, multi_class="ovr")
    )
    assert found.accuracy == pytest.approx(np.average(predicted == y, weights=weight))
    assert found.log_loss == pytest.approx(log_loss(y, proba, sample_weight=weight))
    np.testing.assert_array_equal(
        dense(found), confusion_matrix(y, predicted, sample_weight=weight)
    )
    mass = np.bincount(y, weights=weight)
    assert found.rows == weight.sum()
    assert found.most_frequent == (repr(labels[mass.argmax()]), mass.max() / mass.sum())


def test_auc_needs_rows_of_both_kinds():
    score, weight = np.arange(3.0), np.ones(3)
    assert _area_under_curve(score, score > 1, weight) == 1
    assert _area_under_curve(score, score > 9, weight) is None
    assert _area_under_curve(score, score > 1, np.array([0.0, 0.0, 1.0])) is None


def test_classes_without_rows_and_unknown_ones_are_no_obstacle():
    log_proba = np.log(np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]))
    predicted = np.array([0, 1])
    missing = class_measures("abc", log_proba, predicted, np.array([0, 1]))
    assert (missing.auc, missing.accuracy) == (1.0, 1.0)
    same = class_measures("abc", log_proba, predicted, np.array([1, 1]))
    assert same.auc is None
    assert same.log_loss is not None
    strange = class_measures("abc", log_proba, predicted, np.array([0, 3]))
    assert strange.log_loss is None
    assert strange.accuracy == 0.5
    assert strange.label(3) == "a class unknown to the model"


def test_one_class_for_all_rows_is_a_caveat_with_a_remedy():
    log_proba = np.log(np.array([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]]))
    zeros, y = np.zeros(3, dtype=int), np.array([0, 1, 0])
    found = class_measures(["no", "yes"], log_proba, zeros, y)
    words = found.caveat("rows of the test")
    assert words.startswith("All 3 rows of the test get the same class, 'no', though 33.3% of them")
    for remedy in ("class_weight='balanced'", "lower reg_strength", "more rows", "threshold"):
        assert remedy in words
    assert class_measures(["no", "yes"], log_proba, zeros, zeros).caveat("rows") == ""  # all right
    assert class_measures(["no", "yes"], log_proba, y, y).caveat("rows") == ""
    assert class_measures(["no", "yes"], log_proba[:1], zeros[:1], y[1:2]).caveat("rows") == ""
    some = class_measures(["no", "yes", "no idea"], log_proba, y, np.array([0, 1, 2]))
    assert some.in_words().endswith("never predicted: 'no idea'")


def test_measures_of_numbers():
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=(50, 2)), rng.integers(1, 4, 50)
    close = y + 0.1 * rng.normal(size=(50, 2))
    found = number_measures(close, y, weight)
    assert found.score == pytest.approx(r2_score(y, close, sample_weight=weight))
    assert found.caveat("rows") == ""
    still = np.stack([close[:, 0], 0.01 * close[:, 1]], axis=1)
    words = number_measures(still, y).caveat("rows of the test")
    assert words.startswith("All 50 rows of the test get nearly the same prediction of target 1:")
    assert "lower reg_strength" in words
    assert not number_measures(still, y).is_trivial  # the other target moves
    assert "of target 1 (and 1 more)" in number_measures(0.01 * still, y).caveat("rows")
    assert number_measures(0.01 * still, y).is_trivial
    nothing = number_measures(0 * y[:, :1], 0 * y[:, :1]).caveat("rows")
    assert nothing == "All 50 rows have the same value: there is nothing to tell apart."
    rounded = number_measures(3.5 + 1e-15 * np.arange(50.0)[:, None], np.full((50, 1), 3.5))
    assert rounded.caveat("rows") == nothing
    assert number_measures(y[:1], y[:1]).caveat("rows") == ""


def test_an_outlier_among_the_targets_is_no_reason_for_a_caveat():
    y = np.random.default_rng(0).normal(size=(50, 1))
    far = y.copy()
    far[0] = 1e6
    assert number_measures(y, far).caveat("rows") == ""


def imbalanced():
    x = np.random.default_rng(0).normal(size=(200, 3))
    return x, np.where(x[:, 0] + np.random.default_rng(1).normal(size=200) > 2.2, "yes", "no")


@pytest.mark.parametrize("calibrate", [True, False])
def test_summary_of_a_classifier_that_says_one_class_begins_with_it(calibrate, tmp_path):
    x, y = imbalanced()
    model = PSiLONClassifier(**{**TINY, "reg_strength": 1.0}, calibrate=calibrate).fit(x, y)
    assert set(model.predict(x)) == {"no"}
    words = " ".join(model.summary().splitlines())
    assert words.startswith("All 200 rows that the model was trained on get the same class, 'no'")
    assert "class_weight='balanced'" in words[: words.index("PSiLONClassifier on")]
    model.save(tmp_path / "model")
    for again in (psilonnet.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.summary() == model.summary()
        assert again.measures_ == model.measures_
    balanced = PSiLONClassifier(**TINY, class_weight="balanced").fit(x, y)
    assert len(set(balanced.predict(x))) == 2
    assert balanced.summary().startswith("PSiLONClassifier on")


def test_summary_of_a_regressor_that_says_one_number_begins_with_it():
    x, _ = imbalanced()
    settings = {**TINY, "max_steps": 400}
    strong = {**settings, "reg_strength": (20.0, 30.0), "selection": 1.0}
    model = PSiLONRegressor(**strong).fit(x, x[:, 0])
    assert np.ptp(model.predict(x)) < 0.1
    assert model.summary().startswith("All 200 rows that the model was trained on get nearly the")
    assert PSiLONRegressor(**settings).fit(x, x[:, 0]).summary().startswith("PSiLONRegressor on")


def test_summary_has_the_held_out_score_beside_the_proof():
    x, y = imbalanced()
    model = PSiLONClassifier(**TINY).fit(x, y)
    held = model.measures_["held_out"]
    assert held.accuracy == model.held_out_score_
    assert (
        f"On held-out rows: accuracy {held.accuracy:.3f} (always saying 'no': " in model.summary()
    )
    chosen = PSiLONRegressor(**{**TINY, "reg_strength": (1e-3, 1e-2)}).fit(x, x[:, 0])
    assert f"On held-out rows: R^2 {chosen.held_out_score_:.3f}." in chosen.summary()
    with pytest.warns(HeldOutWarning):
        small = PSiLONRegressor(**{**TINY, "cv": None}).fit(x[:30], x[:30, 0])
    assert "Nothing was held out" in small.summary()


def test_measures_count_weights():
    x, y = imbalanced()
    weight = np.where(y == "yes", 3.0, 1.0)
    model = PSiLONClassifier(**TINY).fit(x, y, sample_weight=weight)
    training = model.measures_["training"]
    assert training.rows == weight.sum()
    assert training.accuracy == pytest.approx(model.score(x, y, sample_weight=weight))


@pytest.mark.parametrize("kind", [PSiLONClassifier, PSiLONRegressor])
def test_measures_in_a_file_are_checked(kind, tmp_path):
    x, y = imbalanced()
    kind(**TINY).fit(x, y if kind is PSiLONClassifier else x[:, 0]).save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    measures = manifest["measures"]
    lies = [None, [], {}, {"training": None, "held_out": None}, {**measures, "third": None}]
    training = measures["training"]
    values = (-1.0, 2, 1e999, float("nan"), [7], ["x"], [-0.5], True, "x")
    pairs = [(name, value) for name in training for value in values]
    pairs = [pair for pair in pairs if pair != ("score", -1.0)]  # a bad score is a score
    lies += [{**measures, "training": {**training, name: value}} for name, value in pairs]
    for lie in lies:
        write_model_file(tmp_path / "lie", {**manifest, "measures": lie}, tensors)
        with pytest.raises(ModelFileError):
            psilonnet.load(tmp_path / "lie")


def test_measures_from_plain_data_are_the_same():
    found = class_measures("ab", np.log([[0.7, 0.3]]), np.array([0]), np.array([1]))
    assert ClassMeasures.from_dict(found.to_dict(), ["a", "b"]) == found
    numbers = number_measures(np.ones((3, 1)), np.arange(3.0).reshape(-1, 1))
    assert NumberMeasures.from_dict(numbers.to_dict(), 1) == numbers
