"""Classes, their weights and their probabilities."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from estimators.messy import QUICK, SMALL, messy
from psilonnet import PSiLONClassifier
from psilonnet.nn import AveragedNet


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


def test_score_names_labels_that_are_missing():
    frame, labels, _ = messy(60)
    model = PSiLONClassifier(**QUICK).fit(frame, labels)
    with pytest.raises(ValueError, match=r"must not be missing: .* in row 0"):
        model.score(frame, np.r_[np.array([np.nan], dtype=object), labels[1:]])


def test_validation_rows_have_the_weights_of_their_classes():
    frame, labels, _ = messy(120)
    held, held_labels, _ = messy(80, seed=1)
    weights = {label: 1.0 + 4 * k for k, label in enumerate(sorted(set(labels)))}
    settings = {**QUICK, "cv": None}
    model = PSiLONClassifier(**settings, class_weight=weights, calibrate=False)
    model.fit(frame, labels, validation_data=(held, held_labels))
    numbers = np.searchsorted(model.classes_, held_labels)
    losses = -model.predict_log_proba(held)[np.arange(len(held)), numbers]
    expected = np.average(losses, weights=[weights[label] for label in held_labels])
    assert model.path_["valid_loss"][0] == pytest.approx(expected, rel=1e-5)


def test_members_average_logits():
    x = np.random.default_rng(0).normal(size=(80, 2))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    model = PSiLONClassifier(**{**QUICK, "cv": 3}, calibrate=False).fit(x, y)
    (part,) = model.net_.parts
    parts = []
    for member in range(3):
        alone = copy.copy(model)
        one = replace(part, net=part.net.member(member), weight=torch.ones(1, dtype=torch.float64))
        alone.net_ = AveragedNet([one], model.net_.columns)
        parts.append(alone.decision_function(x))
    np.testing.assert_allclose(np.mean(parts, axis=0), model.decision_function(x), atol=1e-9)
    assert np.std(parts, axis=0).max() > 1e-3


def test_calibration_can_be_turned_off():
    frame, labels, _ = messy()
    assert PSiLONClassifier(**QUICK, calibrate=False).fit(frame, labels).temperature_ == 1.0
    strong = {**QUICK, "reg_strength": 0.1}  # small logits, which held-out rows refute
    assert PSiLONClassifier(**strong).fit(frame, labels).temperature_ < 0.9
    assert PSiLONClassifier(**strong, calibrate=False).fit(frame, labels).temperature_ == 1.0
