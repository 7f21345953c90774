"""A messy table, quick settings, and a model that was exported."""

import numpy as np
import pandas as pd

from psilonnet import Design
from psilonnet.deploy.predictor import Predictor

QUICK = {
    "designs": [Design()],
    "width": 16,
    "depth": 2,
    "cv": 2,
    "max_steps": 40,
    "random_state": 0,
    "verbose": False,
}


def messy(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 9, rows),
            "age": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(1, 90, rows)),
            "town": rng.choice(["Aa", "Bb", "Cc"], rows),
            "flag": rng.random(rows) < 0.5,
            "kind": pd.Series(rng.choice(["u", "v", None], rows), dtype="object"),
            "when": days,
            "same": np.ones(rows),
        }
    )
    y = frame["size"] / 9 + (frame["town"] == "Bb") + rng.normal(0, 0.2, rows)
    return frame, y.to_numpy()


def exported(model, folder):
    model.export_numpy(folder)
    return Predictor(folder)
