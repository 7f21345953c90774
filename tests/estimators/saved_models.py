"""Small models of all kinds that are saved and loaded."""

import numpy as np
import pandas as pd

from psilonnet import Design, PSiLONClassifier, PSiLONRegressor

SMALL = {
    "width": 8,
    "depth": 2,
    "max_steps": 5,
    "random_state": 0,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
}
PIECES = [Design(pieces=4, columns="clipped")]
SEVERAL = [Design(), Design(directions="l2", pieces=3), Design(columns="identity")]


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n)})
    frame.loc[::7, "a"] = np.nan
    return frame, rng.integers(0, 3, n)


MODELS = {
    "classifier": PSiLONClassifier(**SMALL),
    "binary": PSiLONClassifier(**{**SMALL, "cv": 3}, class_weight={0: 1.0, 1: 2.0}),
    "pieces": PSiLONClassifier(**{**SMALL, "designs": PIECES}),
    "crelu": PSiLONRegressor(**{**SMALL, "designs": [Design(architecture="crelu")]}),
    "pruned": PSiLONRegressor(**{**SMALL, "designs": [Design(architecture="resnet")]}, prune=True),
    "several": PSiLONRegressor(
        **{**SMALL, "designs": SEVERAL, "reg_strength": (1e-3, 1e-2), "max_steps": 30}
    ),
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
