"""What a fit keeps in memory, and that it is in no file."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

import psilonnet
from estimators.messy import SMALL
from estimators.small_paths import make_folds, make_settings, train
from psilonnet import Design, PSiLONRegressor
from psilonnet.estimators.selection import Choice, HeldOut
from psilonnet.estimators.training_record import Record

MANY = {**SMALL, "width": 64, "max_steps": 20}


@pytest.fixture(scope="module")
def record():
    folds = make_folds()
    designs = [Design(), Design(directions="l2")]
    candidates, histories = train(
        folds, make_settings(max_steps=10, designs=designs, reg_strength=(1e-3, 1e-2))
    )
    held_out = HeldOut(folds.problem, folds.held)
    return Record(designs, candidates, histories, folds.problem, held_out)


def test_path_tells_of_each_candidate_and_its_weight(record):
    choice = Choice([2, 0], [0.75, 0.25], np.zeros((60, 1)))
    path = record.path(choice)
    assert path["design"] == [0, 0, 1, 1]
    assert path["reg_strength"] == [1e-3, 1e-2, 1e-3, 1e-2]
    assert path["weight"] == [0.25, 0, 0.75, 0]
    y = record.problem.y.numpy()
    losses = [np.mean((candidate.outputs - y) ** 2) for candidate in record.candidates]
    assert path["valid_loss"] == pytest.approx(losses)
    assert path["bound"] == [candidate.bound for candidate in record.candidates]
    assert record.members(choice) == {
        "weight": [0.75, 0.25], "design": [1, 0], "reg_strength": [1e-3, 1e-3]
    }  # fmt: skip


def test_record_without_held_out_rows_has_no_path(record):
    nothing = Record(record.designs, record.candidates, record.histories, record.problem, None)
    assert nothing.path(Choice([0], [1.0], np.zeros((0, 1)))) is None


def test_average_of_candidates_is_one_network(record):
    choice = Choice([2, 0], [0.75, 0.25], np.zeros((60, 1)))
    net, x = choice.averaged(record.candidates), record.problem.x
    each = [record.candidates[k].make_net()(x) for k in (2, 0)]
    torch.testing.assert_close(net(x), 0.75 * each[0] + 0.25 * each[1], rtol=0, atol=1e-12)
    assert net.members == 4


def test_candidates_are_not_in_pickles_and_files(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = PSiLONRegressor(**MANY).fit(x, x[:, 0])
    one = PSiLONRegressor(**MANY, reg_strength=1e-3).fit(x, x[:, 0])
    assert len(model._record.candidates) > 10
    assert "_record" not in model.__getstate__()
    networks = model.net_.members / one.net_.members
    assert len(pickle.dumps(model)) < 1.1 * networks * len(pickle.dumps(one)) + 10_000
    model.save(tmp_path / "model")
    one.save(tmp_path / "one")
    sizes = [(tmp_path / name).stat().st_size for name in ("model", "one")]
    assert sizes[0] < 1.1 * networks * sizes[1] + 10_000
    for other in (pickle.loads(pickle.dumps(model)), psilonnet.load(tmp_path / "model")):
        assert getattr(other, "_record", None) is None
        np.testing.assert_array_equal(other.predict(x), model.predict(x))
        assert other.path_ == model.path_  # what was tried is told still
    assert not hasattr(clone(model), "_record")


def test_freed_candidates_leave_the_model():
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = PSiLONRegressor(**MANY).fit(x, x[:, 0])
    before = model.predict(x)
    assert model.free_candidates() is model
    assert model._record is None
    np.testing.assert_array_equal(model.predict(x), before)
    assert model.fit(x, x[:, 0]).with_selection("accurate").selection == "accurate"
