"""MAPIE and crepes around our estimators: they work as they are, and say what we say."""

import numpy as np
import pytest

from estimators.messy import QUICK, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor

WHY = "an environment with MAPIE and crepes: .ci/long coverage"


@pytest.fixture(scope="module")
def parts():
    frame, _, score = messy(500)
    y = score + np.random.default_rng(1).normal(0, 0.4, len(score))
    # MAPIE looks whether a fitted model is fitted by predicting a row of zeros without names.
    numbers = np.stack([frame["age"].fillna(40), frame["member"], frame["city"] == "Oslo"], axis=1)
    cuts = [slice(0, 200), slice(200, 391), slice(391, 500)]
    return [(numbers[c].astype(float), y[c], frame[c]) for c in cuts]


@pytest.fixture(scope="module")
def regressor(parts):
    return PSiLONRegressor(**QUICK).fit(*parts[0][:2])


@pytest.fixture(scope="module")
def classifier(parts):
    three = np.digitize(parts[0][1], [-0.5, 0.7])
    return PSiLONClassifier(**QUICK).fit(parts[0][0], three)


def three_classes(part):
    return np.digitize(part[1], [-0.5, 0.7])


def test_mapie_gives_the_intervals_of_conformalize(parts, regressor):
    package = pytest.importorskip("mapie.regression", reason=WHY)
    wrapped = package.SplitConformalRegressor(regressor, confidence_level=0.8)
    wrapped.conformalize(*parts[1][:2])
    _, found = wrapped.predict_interval(parts[2][0])
    ends = regressor.conformalize(*parts[1][:2]).predict_interval(parts[2][0], 0.8)
    np.testing.assert_allclose(found[:, :, 0].T, ends, rtol=1e-9, atol=1e-9)


def test_mapie_fits_our_regressor_on_folds_of_a_messy_table(parts):
    package = pytest.importorskip("mapie.regression", reason=WHY)
    model = package.CrossConformalRegressor(PSiLONRegressor(**QUICK), 0.8, cv=3)
    model.fit_conformalize(parts[0][2], parts[0][1])
    _, found = model.predict_interval(parts[2][2])
    low, high = found[:, :, 0].T
    assert 0.65 < ((low <= parts[2][1]) & (parts[2][1] <= high)).mean() < 0.95


def test_mapie_gives_the_sets_of_conformalize(parts, classifier):
    package = pytest.importorskip("mapie.classification", reason=WHY)
    wrapped = package.SplitConformalClassifier(classifier, confidence_level=0.8)
    wrapped.conformalize(parts[1][0], three_classes(parts[1]))
    found = wrapped.predict_set(parts[2][0])[1][:, :, 0]
    own = classifier.conformalize(parts[1][0], three_classes(parts[1]))
    sets = own.predict_set(parts[2][0], 0.8)
    filled = found.any(axis=1)  # MAPIE's sets can be empty, ours hold the most probable class
    np.testing.assert_array_equal(sets[filled], found[filled])
    assert (sets[~filled].sum(axis=1) == 1).all()


def test_crepes_gives_the_intervals_of_conformalize(parts, regressor):
    crepes = pytest.importorskip("crepes", reason=WHY)
    wrapped = crepes.WrapRegressor(regressor)
    wrapped.calibrate(*parts[1][:2])
    found = wrapped.predict_int(parts[2][0], confidence=0.8)
    ends = regressor.conformalize(*parts[1][:2]).predict_interval(parts[2][0], 0.8)
    np.testing.assert_allclose(found.T, ends, rtol=1e-9, atol=1e-9)


def test_crepes_gives_the_sets_of_conformalize(parts, classifier):
    crepes = pytest.importorskip("crepes", reason=WHY)
    wrapped = crepes.WrapClassifier(classifier)
    wrapped.calibrate(parts[1][0], three_classes(parts[1]))
    found = wrapped.predict_set(parts[2][0], labels=False, confidence=0.8, smoothing=False)
    own = classifier.conformalize(parts[1][0], three_classes(parts[1]))
    sets = own.predict_set(parts[2][0], 0.8)
    filled = np.asarray(found, dtype=bool).any(axis=1)
    np.testing.assert_array_equal(sets[filled], np.asarray(found, dtype=bool)[filled])
