"""Small models of all kinds that are saved and loaded."""

import numpy as np
import pandas as pd

from psilonnet import PSiLONClassifier, PSiLONRegressor

SMALL = {
    "width": 8,
    "depth": 2,
    "max_steps": 5,
    "random_state": 0,
    "reg_strength": 1e-3,
    "knots": 0,
}


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n)})
    frame.loc[::7, "a"] = np.nan
    return frame, rng.integers(0, 3, n)


MODELS = {
    "classifier": PSiLONClassifier(**SMALL),
    "binary": PSiLONClassifier(**SMALL, n_members=2, class_weight={0: 1.0, 1: 2.0}),
    "knots": PSiLONClassifier(**{**SMALL, "knots": 4}, scaling="robust"),
    "crelu": PSiLONRegressor(**SMALL, architecture="crelu"),
    "pruned": PSiLONRegressor(**SMALL, architecture="resnet", prune=True),
    "chosen": PSiLONRegressor(**{**SMALL, "reg_strength": (1e-3, 1e-2)}, validation=3),
    "targets": PSiLONRegressor(**SMALL),
}


def fitted(name):
    frame, numbers = table()
    y = numbers
    if name == "binary":
        y = np.array(["no", "yes"])[numbers % 2]
    if name == "targets":
        y = np.stack([numbers, -numbers], axis=1)
    model = MODELS[name]
    if name == "binary":
        model = model.set_params(class_weight={"no": 1.0, "yes": 2.0})
    return model.fit(frame, y), frame
