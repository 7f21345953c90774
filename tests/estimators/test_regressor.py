"""One or several targets, and the losses."""

import numpy as np
import pytest

from estimators.messy import QUICK
from psilonnet import PSiLONRegressor


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
