"""Estimators of all kinds, fitted to a small table, for attacks through the whole preprocessing."""

import numpy as np
import pandas as pd

from psilonnet import Design

SMALL = {"width": 16, "depth": 2, "max_steps": 80, "learning_rate": 1e-2, "random_state": 0}
QUICK = {**SMALL, "reg_strength": 1e-3, "designs": [Design()], "cv": 2}


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(100, 20, n),
            "b": rng.exponential(3, n),
            "city": rng.choice(["x", "y", "z"], n),
            "flag": rng.random(n) > 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
        }
    )
    y = (frame.a - 100) / 20 - frame.b / 3 + (frame.city == "y") + 0.5 * frame.flag
    frame.loc[::11, "b"] = np.nan
    return frame, y.to_numpy()


MODELS = {
    "plain": {},
    "clipped": {"designs": [Design(columns="clipped")]},
    "knots": {"designs": [Design(columns="identity", pieces=4)]},
    "resnet": {"designs": [Design(architecture="resnet")]},
    "l2": {"designs": [Design(directions="l2")], "cv": 3},
    "average": {
        "designs": [Design(pieces=4), Design(columns="clipped", directions="l2")],
        "reg_strength": (1e-4, 1e-3, 1e-2),
        "selection": "accurate",
    },
    "pruned": {"prune": True, "designs": [Design(architecture="crelu")]},
}


def moved_rows(frame, scales, rng, size):
    """Return rows whose numbers moved by up to ``size`` scales, at random or to a corner."""
    moved = frame.copy()
    for name, scale in scales.items():
        step = rng.uniform(-1, 1, len(frame))
        if rng.random() < 0.5:
            step = np.sign(step)
        shift = step * size * scale
        if name == "day":
            moved[name] = moved[name] + pd.to_timedelta(shift, "D")
        else:
            moved[name] = moved[name] + shift
    return moved


def scales_of(model):
    codes = zip(model.encoder_.names, model.encoder_.codes, strict=True)
    return {name: code.scale for name, code in codes if hasattr(code, "scale")}
