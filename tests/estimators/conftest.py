"""Fixtures shared by the tests of the estimators."""

import pytest

from estimators.messy import SMALL, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor


@pytest.fixture(scope="session")
def fitted():
    frame, labels, score = messy()
    return PSiLONClassifier(**SMALL).fit(frame, labels), PSiLONRegressor(**SMALL).fit(frame, score)
