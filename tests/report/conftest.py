"""Fixtures shared by the tests of the report."""

import pytest

from psilonnet import PSiLONClassifier
from report.pages import SMALL, mixed


@pytest.fixture(scope="session")
def classifier():
    return PSiLONClassifier(**{**SMALL, "learning_rate": 2e-2}).fit(*mixed())
