"""What pruning may cost, and that its zeros are there."""

import numpy as np
import torch

from estimators.messy import QUICK
from psilonnet import PSiLONRegressor
from psilonnet.estimators.choosing import HeldOut
from psilonnet.estimators.fitting import Problem
from psilonnet.estimators.pruning import CUTS, _sparsest_good_cut


def test_pruning_leaves_zeros_and_says_so():
    x = np.random.default_rng(0).normal(size=(100, 5))
    settings = {**QUICK, "width": 64, "depth": 2, "max_steps": 150}
    model = PSiLONRegressor(**settings, prune=True).fit(x, x[:, 0])
    assert model.sparsity_ > 0.3
    assert PSiLONRegressor(**settings).fit(x, x[:, 0]).sparsity_ == 0
    assert "exact zeros" in model.summary()


def test_the_sparsest_good_cut_is_taken_else_the_best():
    y = torch.zeros(4, 1)
    problem = Problem(y, y, torch.ones(4), torch.ones(4), loss="squared_error", outputs=1)

    def chosen(dense, *losses):
        usual, *rest = (np.full((4, 1), np.sqrt(loss)) for loss in (dense, *losses))
        outputs = dict(zip(CUTS, rest, strict=True))
        return CUTS.index(_sparsest_good_cut(outputs, usual, HeldOut(problem, np.arange(4))))

    assert chosen(1.0, 1.015, 0.999) == 0
    assert chosen(1.0, 1.03, 1.0) == 1
    assert chosen(1.0, 0.99, 0.9) == 1  # pruning may even help
    assert chosen(1.0, 1.2, 1.4) == 0
