"""Two folds of a small regression, and a recipe that trains on them in a moment."""

from dataclasses import replace

import numpy as np
import torch

from estimators.messy import SMALL
from psilonnet import PSiLONRegressor
from psilonnet.estimators.folds import Folds
from psilonnet.estimators.joint_fit import Job
from psilonnet.estimators.paths import train_designs
from psilonnet.estimators.problem import Problem
from psilonnet.estimators.progress import Progress
from psilonnet.estimators.recipe import make_recipe

SIDES = np.arange(0, 60, 2), np.arange(1, 60, 2)


def make_folds(y=None, rows=60, x=None):
    """Return two folds of a small regression, the even rows and the odd ones."""
    x = np.random.default_rng(0).normal(size=(rows, 2)) if x is None else x
    x = torch.from_numpy(x)
    y = x[:, :1].float() if y is None else torch.as_tensor(y, dtype=torch.float32).reshape(-1, 1)
    ones = torch.ones(rows)
    numbers = torch.ones(x.shape[1], dtype=torch.bool)
    problem = Problem(x, y, ones, ones.double(), numbers, "squared_error", 1)
    return Folds(problem, [SIDES, SIDES[::-1]])


def make_settings(**parameters):
    parameters = {**SMALL, "max_steps": 50, **parameters}
    recipe = make_recipe(
        PSiLONRegressor(**parameters).get_params(deep=False), 60, seed=0, alone=False
    )
    return replace(recipe, may_extend=False)


def train(folds, recipe, progress=None):
    """Train all designs; return what came of them."""
    return drive(train_designs(folds, recipe, progress or Progress(False)), Job.run)


def drive(fitting, run):
    """Run the jobs that are asked for; return what comes of them."""
    try:
        job = next(fitting)
        while True:
            job = fitting.send(run(job))
    except StopIteration as end:
        return end.value
