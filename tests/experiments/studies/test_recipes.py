"""The search for a better default: members, and ways to combine them."""

import numpy as np
import pytest

from experiments.studies import recipes
from experiments.studies.combine import (
    COMBINATION_RULES,
    RECIPES,
    Members,
    average_weights,
    best_weights,
    joined,
    judge,
    mean_loss,
)


def made_up(seed=0, count=6, task="regression"):
    rng = np.random.default_rng(seed)
    y, judges_y = rng.normal(size=300), rng.normal(size=400)
    if task == "classification":
        y, judges_y = (y > 0).astype(float), (judges_y > 0).astype(float)

    def near(truth):
        return np.stack([truth + rng.normal(size=truth.shape) * 0.7 for _ in range(count)])

    return Members(
        strengths=np.arange(count, dtype=float),
        held=near(y),
        judged=near(judges_y),
        refits=near(judges_y),
        bounds=np.arange(1.0, count + 1),
        y=y,
        judges_y=judges_y,
    )


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_greedy_average_is_never_worse_on_held_out_rows(task):
    members = made_up(task=task)
    losses = []
    for weigh in (best_weights, average_weights):
        weights = weigh(task, members)
        assert weights.sum() == pytest.approx(1)
        assert (weights >= 0).all()
        losses.append(mean_loss(task, weights @ members.held, members.y))
    assert losses[1] <= losses[0]
    assert (weights > 0).sum() > 1  # independent errors: an average helps


@pytest.mark.parametrize("way", COMBINATION_RULES)
def test_rules_count_their_networks(way):
    members = made_up()
    outputs, bound, count = COMBINATION_RULES[way]("regression", members)
    assert outputs.shape == (400,)
    assert 1 <= bound <= 6
    assert (count == 1) == way.startswith("best")
    assert (mean_loss("regression", outputs, members.judges_y) < 0.4) == way.startswith("greedy")


def test_members_are_joined_saved_and_loaded(tmp_path):
    both = joined([made_up(0), made_up(1)])
    both.save(tmp_path / "members.npz")
    again = Members.load(tmp_path / "members.npz")
    assert again.count == 12
    np.testing.assert_allclose(again.held, both.held, rtol=1e-6)


def test_a_family_is_trained_and_judged(data_dir, tmp_path, monkeypatch):
    monkeypatch.setitem(
        recipes.FAMILIES, "tiny", recipes.Family("robust", knots=4, width=16, steps=60)
    )
    monkeypatch.setitem(RECIPES, "tiny: greedy", (("tiny",), COMBINATION_RULES["greedy"]))
    cell = {"dataset": "brazilian_houses", "family": "tiny"}
    result = recipes.compute(cell, data=str(data_dir), outputs=tmp_path)
    assert len(result["strengths"]) == 4
    assert all(0 < loss < 3 for loss in result["valid_loss"])
    name, _, loss, bound, used = judge("tiny: greedy", "brazilian_houses", tmp_path, str(data_dir))
    assert name == "brazilian_houses"
    assert 0 < loss < 3
    assert bound > 0
    assert 1 <= used <= 4


def test_every_family_is_part_of_a_recipe():
    used = {family for families, _ in RECIPES.values() for family in families}
    assert used == set(recipes.FAMILIES)
