import numpy as np
import pandas as pd

from experiments.comparison.monotone import MODELS, SEEDS, SIGNS, cells, steps_against, summary
from experiments.frames import Part


def test_steps_against_a_direction_are_counted():
    rng = np.random.default_rng(0)
    part = Part(pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"]), np.zeros(50))
    assert steps_against(lambda x: x.a + 2 * x.b, part, [1, 0])[1:] == (0, 0.0)
    tried, against, farthest = steps_against(lambda x: x.a - 2 * x.b, part, [1, 1])
    assert (tried, against) == (2 * 50 * 40, 50 * 40)
    assert farthest > 0.01
    assert steps_against(lambda x: x.a - 2 * x.b, part, [1, -1])[1] == 0


def test_all_cells_are_different_and_all_splits_are_averaged():
    assert len({tuple(cell.values()) for cell in cells()}) == len(SIGNS) * len(SEEDS) * len(MODELS)
    losses = {("heloc", "psilonnet", seed): 0.5 + seed for seed in SEEDS}
    assert summary(losses)["heloc"] == {"psilonnet": 1.5}
    del losses["heloc", "psilonnet", 1]
    assert summary(losses)["heloc"] == {}
