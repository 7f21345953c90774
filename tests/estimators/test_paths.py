"""Networks that diverge are left out."""

import numpy as np
import pytest

from estimators.messy import SMALL
from psilonnet import PSiLONRegressor
from psilonnet.estimators.fitting import LostNetworksWarning, Pick, train_on_all
from psilonnet.tables import read_columns
from psilonnet.training import members_of


def test_networks_that_diverge_are_named_and_left_out():
    x = np.random.default_rng(0).normal(size=(60, 2))
    # The gradient of the bound of two outputs overflows with the second.
    model = PSiLONRegressor(**{**SMALL, "reg_strength": (1e-3, 3e38)})
    with pytest.warns(LostNetworksWarning, match="1 of 2 networks diverged in the choice"):
        model.fit(x, x)
    assert model.reg_strength_ == 1e-3
    problem = model._problem(read_columns(x), x, np.ones(60))
    design = model._design(0, 0, 60)
    picks = [Pick(design, strength, 0.25) for strength in (1e-3, 3e38, 1e-2)]
    training = train_on_all(problem, picks, n_members=2, prune=None)
    run = next(training).run()
    lost = pytest.warns(LostNetworksWarning, match="2 of 6 networks diverged in the last training")
    with lost, pytest.raises(StopIteration) as end:
        training.send(run)
    net, _, used = end.value.value
    assert members_of(net) == 4
    assert [(pick.strength, pick.weight) for pick in used] == [(1e-3, 0.5), (1e-2, 0.5)]
