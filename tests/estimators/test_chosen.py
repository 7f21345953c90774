"""The slider from accurate to provable: another model of the same training."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import psilonnet
from estimators.messy import QUICK
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from psilonnet.estimators import SELECTIONS

CHOICES = {
    "width": 16, "depth": 1, "max_steps": 60, "learning_rate": 8e-2, "random_state": 0, "cv": 2,
    "designs": [Design(), Design(directions="l2", pieces=3)], "reg_strength": (1e-2, 0.1, 0.3, 1.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def slid():
    """A model with something to choose, and its rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = x[:, 0] + 0.8 * rng.normal(size=120) > 0
    return PSiLONClassifier(**CHOICES).fit(x, y), x, y


@pytest.mark.parametrize("selection", ["accurate", "provable", 0.2])
def test_other_selection_is_the_model_of_a_fresh_fit(selection, slid):
    model, x, y = slid
    other = model.with_selection(selection)
    fresh = PSiLONClassifier(**CHOICES, selection=selection).fit(x, y)
    assert other.get_params() == fresh.get_params()
    np.testing.assert_array_equal(other.predict_proba(x), fresh.predict_proba(x))
    for name in ("temperature_", "held_out_score_", "members_", "path_", "history_", "n_iter_",
                 "reg_strength_", "lipschitz_bound_", "measures_", "near_sparsity_"):  # fmt: skip
        assert getattr(other, name) == getattr(fresh, name), name
    assert other.summary() == fresh.summary()


def test_selection_leaves_the_model_it_was_asked_of_as_it_was(slid):
    model, x, _ = slid
    before, members, score = model.predict_proba(x), model.members_, model.held_out_score_
    strict = model.with_selection(0.2)
    assert type(strict) is PSiLONClassifier
    assert (model.selection, strict.selection) == ("balanced", 0.2)
    assert strict.members_ != model.members_ == members
    assert strict.temperature_ != model.temperature_
    assert model.held_out_score_ == score
    np.testing.assert_array_equal(model.predict_proba(x), before)
    again = strict.with_selection("balanced")  # back, also from the other model
    np.testing.assert_array_equal(again.predict_proba(x), before)


def test_accurate_has_the_least_loss_and_provable_the_least_bound(slid):
    accurate, balanced, provable = (slid[0].with_selection(word) for word in SELECTIONS)
    assert (accurate.selection, provable.selection) == ("accurate", "provable")
    losses, bounds = [], []
    for model in (accurate, balanced, provable):
        record, weight = model._record, np.array(model.path_["weight"])
        outputs = np.tensordot(weight, np.stack([c.outputs for c in record.candidates]), axes=1)
        losses.append(float(record.held_out.reported(outputs)))
        bounds.append(float(weight @ model.path_["bound"]))
    assert losses == sorted(losses)
    assert bounds == sorted(bounds, reverse=True)
    assert losses[0] < losses[-1]
    assert bounds[0] > bounds[-1]


def test_selection_is_refused_in_words_where_it_cannot_be(slid, tmp_path):
    model, x, y = slid
    with pytest.raises(ValueError, match=r"'selection' parameter .*Got 'best' instead"):
        model.with_selection("best")
    gone = r"not in files, pickles and copies.*They are gone: fit again with selection=.accurate."
    model.save(tmp_path / "model")
    freed = clone(model).set_params(max_steps=5).fit(x, y)
    assert freed.free_candidates() is freed
    copied = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for other in (*copied, psilonnet.load(tmp_path / "model"), freed):
        with pytest.raises(ValueError, match=gone):
            other.with_selection("accurate")
        assert len(other.predict(x)) == len(x)
    pruned = PSiLONRegressor(**QUICK, prune=True).fit(x, x[:, 0])
    with pytest.raises(ValueError, match=r"A pruned model .*fit again with selection=0\.1"):
        pruned.with_selection(0.1)
    with pytest.raises(NotFittedError):
        PSiLONRegressor().with_selection("accurate")
