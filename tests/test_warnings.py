"""Warnings point at the user's own line."""

import numpy as np
import pandas as pd
import pytest

from psilonnet import PSiLONClassifier, PSiLONRegressor

QUICK = {"width": 4, "depth": 1, "max_steps": 2, "random_state": 0}


def test_warnings_of_fit_and_predict_point_at_this_file():
    x = np.random.default_rng(0).normal(size=(50, 2))
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(empty=np.nan)
    with pytest.warns(UserWarning, match="has no value in any row") as said:
        model = PSiLONRegressor(**QUICK).fit(frame, x[:, 0])
    with pytest.warns(UserWarning, match="farther outside") as far:
        model.predict(frame * 1000)
    with pytest.warns(UserWarning, match="No rows could be held out") as none:
        PSiLONRegressor(**QUICK).fit(x[:30], x[:30, 0])
    with pytest.warns(UserWarning, match="31 classes in 50 rows") as many:
        PSiLONClassifier(cv=2, **QUICK).fit(x, np.arange(50) % 31)
    assert {w.filename for w in (*said, *far, *none, *many)} == {__file__}
