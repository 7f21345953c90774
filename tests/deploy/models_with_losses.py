"""Small regressors whose outputs become something else than numbers on a scale."""

import numpy as np
import pandas as pd

from psilonnet import Design, PSiLONRegressor

LEVELS = (0.1, 0.5, 0.9)
SMALL = {"width": 8, "depth": 2, "max_steps": 40, "learning_rate": 1e-2, "random_state": 0}
LOSSES = {
    "quantiles": {"loss": "quantile", "quantile": LEVELS},
    "one quantile": {"loss": "quantile", "quantile": 0.8},
    "counts": {"loss": "poisson"},
}


def counted(n=120, seed=0):
    """Return a frame with holes, and counts that depend on it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n)})
    y = rng.poisson(np.exp(1 + frame.a)).astype(float)
    frame.loc[::7, "a"] = np.nan
    return frame, y


def fitted(name):
    frame, y = counted()
    model = PSiLONRegressor(**SMALL, **LOSSES[name], designs=[Design()], cv=2, reg_strength=1e-3)
    return model.fit(frame, y)


def crossed(model):
    """Return a fitted model of quantiles whose outputs cross in many rows."""
    center = model.target_.center
    center[:] = center.mean()
    return model
