import numpy as np
import pytest
import torch

from psilonnet.estimators.fitting import Design, Pick, Problem, train_on_all
from psilonnet.training import Plan


def result_of(fitting):
    try:
        job = next(fitting)
        while True:
            job = fitting.send(job.run())
    except StopIteration as done:
        return done.value


def test_networks_that_diverge_in_the_last_training_are_warned_about():
    x = torch.tensor(np.random.default_rng(0).normal(size=(30, 2)), dtype=torch.float32)
    ones = torch.ones(30)
    problem = Problem(x, x[:, :1], ones, ones.double(), "squared_error", outputs=1)
    plan = Plan(steps=4, batch_size=30, evaluate_every=1, seed=0, progress=False)
    design = Design("mlp", 4, 1, 0, 2e-3, "cpu", 0, plan)
    picks = [Pick(design, 1e-3), Pick(design, float("inf"))]
    with pytest.warns(UserWarning, match=r"1 of 2 networks diverged.*smaller learning_rate"):
        net, _ = result_of(train_on_all(problem, picks, n_members=1, prune=None))
    assert len(net.layers[0].direction) == 1
    result_of(train_on_all(problem, picks[:1], n_members=1, prune=None))  # no word
