"""Encoded rows, and what the networks of a design see of them."""

import numpy as np
import pytest
import torch

from psilonnet.estimators.designs import Design
from psilonnet.estimators.problem import Problem, View
from psilonnet.training import PopulationTooLargeError, members_of


def make_problem(rows=40, validation_rows=0):
    """Return a column of numbers, one of 0 and 1, and the rows to choose on far away."""
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=rows), rng.integers(0, 2, rows)], axis=1)
    x[rows - validation_rows :, 0] += 100
    weight = torch.ones(rows)
    return Problem(
        torch.from_numpy(x), torch.from_numpy(x[:, :1]).float(), weight, weight.double(),
        torch.tensor([True, False]), "squared_error", 1, validation_rows,
    )  # fmt: skip


def view(problem, **design):
    return View(problem, Design(**design), width=8, depth=1, seed=3)


def test_rows_may_be_parted_with_their_weights():
    problem = make_problem(3)
    counts = torch.tensor([4.0, 1.0, 6.0], dtype=torch.float64)
    weighed = Problem(
        problem.x, problem.y, torch.tensor([8.0, 1.0, 3.0]), counts, problem.numbers, "huber", 1
    )
    parted = weighed.parted(np.array([0, 0, 2]), np.array([1.0, 3.0, 6.0]))
    assert parted.x.equal(problem.x[[0, 0, 2]])
    assert parted.counts.tolist() == [1, 3, 6]
    # 2, 6 and 3 of the loss, with a mean of 1.
    torch.testing.assert_close(parted.weight, torch.tensor([2.0, 6.0, 3.0]) * 3 / 11)


def test_rows_to_choose_on_follow():
    whole = make_problem(10).followed_by(make_problem(4))
    assert (len(whole.y), whole.validation_rows) == (14, 4)
    y, weight, counts = whole.truth(np.array([0, 13]))
    assert y == pytest.approx([float(make_problem(10).y[0, 0]), float(make_problem(4).y[3, 0])])
    assert weight.tolist() == counts.tolist() == [1, 1]


@pytest.mark.parametrize("bend", ["identity", "log_tails", "clipped"])
def test_columns_of_numbers_are_mapped_and_others_are_not(bend):
    problem = make_problem()
    seen = view(problem, columns=bend).seen
    assert seen.dtype == torch.float32
    assert seen[:, 1].equal(problem.x[:, 1].float())
    assert (bend == "identity") == seen[:, 0].equal(problem.x[:, 0].float())
    order = problem.x[:, 0].argsort()
    assert (seen[order, 0].diff() >= 0).all()  # increasing


def test_maps_and_pieces_are_those_of_the_rows_to_train_on():
    alone, followed = (
        make_problem(40),
        make_problem(40).followed_by(make_problem(10, validation_rows=10)),
    )
    for design in ({"columns": "clipped"}, {"pieces": 4}):
        first, second = view(alone, **design), view(followed, **design)
        assert first.columns.center.equal(second.columns.center)
        assert first.columns.scale.equal(second.columns.scale)
        assert first.seen.equal(second.seen[:40])
        if "pieces" in design:
            assert first.edges.equal(second.edges)


def test_pieces_are_quantiles_and_columns_of_two_values_are_not_split():
    own = view(make_problem(200), pieces=4)
    edges = own.edges
    assert edges.shape == (3, 2)
    shares = (own.seen[:, :1] <= edges[:, 0]).float().mean(dim=0)
    torch.testing.assert_close(shares, torch.tensor([0.25, 0.5, 0.75]), atol=0.01, rtol=0)
    assert (edges[:, 1] == 1).all()  # nothing is beyond
    assert view(make_problem(), pieces=1).edges is None


def test_rows_of_each_member_are_its_own():
    problem = make_problem(5)
    rows = view(problem).rows([np.array([0, 2, 4]), np.array([1])])
    assert rows.own.tolist() == [[0, 2, 4], [1, -1, -1]]
    assert rows.x.shape == (5, 2)
    assert view(problem).rows([np.array([1]), np.array([], dtype=int)]) is None


def test_starts_differ_and_are_seeded():
    own = view(make_problem(), pieces=3)
    net = own.make_population(3, 256)
    assert members_of(net) == 3
    direction = net.layers[0].direction
    assert (direction[0] != direction[1]).any()
    assert own.make_population(3, 256).layers[0].direction.equal(direction)
    assert own.make_population(2, 256).layers[0].direction.equal(direction[:2])


def test_populations_beyond_all_memory_are_refused_before_they_are_made():
    huge = View(make_problem(), Design(), width=10**6, depth=3, seed=0)
    with pytest.raises(PopulationTooLargeError, match="smaller width"):
        huge.make_population(5, 256)
