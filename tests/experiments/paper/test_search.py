"""The search for the best strength ends where the whole grid does."""

import numpy as np
import pytest

from experiments.data import load_table, make_parts
from experiments.grid import fresh_grid
from experiments.paper.search import loss_of_mean, replay, searched_grid
from psilonnet.training import Plan

SMALL = Plan(steps=6, evaluate_every=2, batch_size=100, progress=False)


def test_search_ends_where_both_neighbours_are_worse():
    for least in range(13):
        known = replay([float(abs(k - least)) for k in range(13)])
        assert min(known, key=known.__getitem__) == least
        assert len(known) <= 9
    assert len(replay([1.0] * 13)) == 5  # no better neighbour


def test_search_that_is_worse_than_the_mean_goes_on_from_the_strongest():
    losses = [9.0, 8.0, 7.0, *[9.5] * 7, 6.0, 6.01, 6.02]  # a valley, and the mean behind a wall
    assert min(replay(losses, of_mean=6.0), key=losses.__getitem__) == 10
    assert min(replay(losses, of_mean=7.0), key=losses.__getitem__) == 2


def test_loss_of_the_mean(data_dir):
    table = load_table("wine_quality", data_dir)
    parts = make_parts(table, seed=0)
    errors = parts.valid.y - parts.train.y.mean()
    assert loss_of_mean(table, parts) == pytest.approx(errors.square().mean().item())
    table = load_table("credit", data_dir)
    parts = make_parts(table, seed=0)
    ones, share = parts.valid.y.mean().item(), parts.train.y.mean().item()
    entropy = -ones * np.log(share) - (1 - ones) * np.log(1 - share)
    assert loss_of_mean(table, parts) == pytest.approx(entropy, rel=1e-5)


def test_searched_strengths_are_those_of_the_whole_grid(data_dir):
    table = load_table("cpu_act", data_dir)
    parts = make_parts(table, seed=0)
    found = searched_grid("P-Net", table, parts, plan=SMALL)
    whole = fresh_grid("P-Net", table, parts, plan=SMALL)
    at = [whole["strengths"].index(strength) for strength in found["strengths"]]
    assert at == sorted(replay(whole["valid_loss"], loss_of_mean(table, parts)))
    assert found["valid_loss"] == pytest.approx([whole["valid_loss"][k] for k in at], rel=1e-4)
