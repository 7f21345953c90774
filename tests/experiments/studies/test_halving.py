"""Dropping strengths early, replayed on made-up curves."""

import pytest

from experiments.grid import best
from experiments.studies.halving import regret, replay


def test_replay_of_a_rule_follows_the_curves():
    curves = [[float(abs(k - 3) + 1) for k in range(13)] for _ in range(60)]
    cell = {
        "task": "classification",
        "steps": [50 * (k + 1) for k in range(60)],
        "valid_curves": curves,
        "valid_loss": curves[-1],
    }
    assert best(cell) == 3
    assert replay(cell, [(0.1, 2), (0.5, 1)]) == 3
    assert regret(cell, 3) == 0
    assert regret(cell, 4) == pytest.approx(1.0)
