"""A small messy table, and settings with which an estimator is fitted to it in a moment."""

import numpy as np
import pandas as pd

from psilonnet import Design

SMALL = {
    "width": 16, "depth": 1, "max_steps": 60, "learning_rate": 2e-2, "random_state": 0,
    "designs": [Design()], "cv": 2,
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
