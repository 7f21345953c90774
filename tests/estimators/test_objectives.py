"""Quantiles, counts and losses of one's own: what is minimised, predicted, proven and kept."""

import pickle
import re

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score, mean_pinball_loss, r2_score

import psilonnet
from estimators.messy import QUICK, SMALL, messy
from psilonnet import PSiLONRegressor
from psilonnet.certify import input_moves
from psilonnet.estimators.number_targets import CountTarget, NumberTarget, QuantileTarget
from psilonnet.nn import AveragedNet
from sizes import size

LEVELS = (0.1, 0.5, 0.9)


def noisy(n=400, seed=0):
    """Return rows whose spread depends on the second column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, 50 + 10 * x[:, 0] + (2 + 10 * (x[:, 1] > 0)) * rng.normal(size=n)


@pytest.fixture(scope="module")
def quantiles():
    x, y = noisy()
    settings = {**SMALL, "max_steps": 300, "reg_strength": (1e-4, 1e-3)}
    return PSiLONRegressor(**settings, loss="quantile", quantile=LEVELS).fit(x, y)


def test_several_quantiles_follow_the_row(quantiles):
    x, y = noisy(2000, seed=1)
    found = quantiles.predict(x)
    assert found.shape == (2000, 3)
    assert (np.diff(found, axis=1) >= 0).all()
    shares = (y[:, None] <= found).mean(axis=0)
    np.testing.assert_allclose(shares, LEVELS, atol=0.08)
    width = found[:, 2] - found[:, 0]
    assert width[x[:, 1] > 0.3].mean() > 2 * width[x[:, 1] < -0.3].mean()


def test_score_of_several_quantiles_is_their_mean_d2(quantiles):
    x, y = noisy(300, seed=2)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    columns = zip(quantiles.predict(x).T, LEVELS, strict=True)
    expected = [d2_pinball_score(y, p, sample_weight=weight, alpha=q) for p, q in columns]
    assert quantiles.score(x, y, sample_weight=weight) == pytest.approx(np.mean(expected))
    assert quantiles.score(x, y) > 0.2
    assert quantiles.measures_["held_out"].score == pytest.approx(quantiles.held_out_score_)
    said = f"On held-out rows: D^2 {quantiles.held_out_score_:.3f} of the pinball loss."
    assert said in quantiles.summary()


@pytest.mark.parametrize("method", ["global", "local"])
def test_ranges_of_several_quantiles_hold_and_are_sorted(quantiles, method):
    x, _ = noisy(20, seed=3)
    low, high = quantiles.output_range(x, 0.1, method=method)
    assert (np.diff(low, axis=1) >= 0).all()
    assert (np.diff(high, axis=1) >= 0).all()
    scale = np.array([code.scale for code in quantiles.encoder_.codes])
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = quantiles.predict(x + 0.1 * scale * rng.choice([-1, 1], size=x.shape))
        assert ((low <= found) & (found <= high)).all()


def test_bound_of_several_quantiles_is_that_of_the_one_that_moves_most(quantiles):
    x, _ = noisy(50, seed=4)
    moves = input_moves(quantiles.net_, torch.eye(3, dtype=torch.float64)).numpy()
    own = quantiles.target_.scale * moves.sum(axis=1)
    assert quantiles.lipschitz_bound_ == pytest.approx(own.max())
    assert own.max() < 0.9 * own.sum()
    assert "each predicted quantile moves by at most" in quantiles.summary()
    scale = np.array([code.scale for code in quantiles.encoder_.codes])
    for k in range(3):
        step = np.zeros(3)
        step[k] = scale[k]
        moved = np.abs(quantiles.predict(x + step) - quantiles.predict(x))
        assert moved.max() <= quantiles.feature_sensitivity_[k]


def test_slopes_of_sorted_quantiles_are_those_of_any_output():
    x = np.linspace(-1, 1, 60)[:, None]
    model = PSiLONRegressor(**QUICK, loss="quantile", quantile=(0.1, 0.9)).fit(x, x[:, 0])
    crossing = torch.nn.Linear(1, 2, bias=False).double()
    crossing.weight.data = torch.tensor([[0.1], [1.0]], dtype=torch.float64)
    model.net_ = AveragedNet.of(torch.nn.Sequential(crossing))
    scale = model.encoder_.codes[0].scale / model.target_.scale[0]
    x *= 2.9  # as far as they cross
    slopes = np.diff(model.predict(x), axis=0) / np.diff(x, axis=0) * scale
    np.testing.assert_allclose([slopes.min(axis=0), slopes.max(axis=0)], [[0.1] * 2, [1.0] * 2])
    low, high = model.feature_slopes_[:, 0].T * scale
    assert (low <= slopes.min(axis=0) + 1e-9).all()
    assert (high >= slopes.max(axis=0) - 1e-9).all()


def test_limits_hold_for_numbers_that_are_rounded_to_whole_steps():
    rng = np.random.default_rng(0)
    outputs, down, up = rng.normal(size=(3, 2000, 1))
    down, up = np.abs(down), np.abs(up)
    share = rng.uniform(size=(2000, 1))
    for step in (5e-324, 7e-323, 1e-320, 1e-308, 1.0):
        target = NumberTarget(np.array([3 * step]), np.array([2 * step]))
        low, high = target.limits(outputs, down, up)
        moved = target.decode(outputs - down + share * (down + up))
        assert ((low <= moved) & (moved <= high)).all()
        assert (
            (low <= target.decode(outputs - down)) & (target.decode(outputs + up) <= high)
        ).all()


@pytest.mark.parametrize("level", [0.2, 0.9])
def test_one_quantile_is_predicted_like_a_number(level):
    x, y = noisy()
    model = PSiLONRegressor(**{**QUICK, "max_steps": 300}, loss="quantile", quantile=level)
    model.fit(x, y)
    new, truth = noisy(2000, seed=1)
    found = model.predict(new)
    assert found.shape == (2000,)
    assert (truth <= found).mean() == pytest.approx(level, abs=0.08)
    always = np.full(2000, np.quantile(y, level))
    loss = mean_pinball_loss(truth, found, alpha=level)
    assert loss < 0.8 * mean_pinball_loss(truth, always, alpha=level)
    assert model.score(new, truth) == pytest.approx(r2_score(truth, found))  # as scikit-learn does
    assert "D^2" in model.measures_["held_out"].in_words()


def test_one_quantile_of_several_targets():
    x, y = noisy()
    both = np.stack([y, -y], axis=1)
    model = PSiLONRegressor(**{**QUICK, "max_steps": 300}, loss="quantile", quantile=0.9)
    found = model.fit(x, both).predict(x)
    assert found.shape == (400, 2)
    np.testing.assert_allclose((both <= found).mean(axis=0), 0.9, atol=0.08)


def test_a_list_of_one_quantile_gives_a_column():
    x, y = noisy(100)
    model = PSiLONRegressor(**QUICK, loss="quantile", quantile=[0.5]).fit(x, y)
    assert model.predict(x).shape == (100, 1)
    low, high = model.output_range(x, 0.1)
    assert low.shape == high.shape == (100, 1)


def test_what_is_held_out_chooses_by_the_same_loss(quantiles):
    record = quantiles._record
    y, _, _ = record.problem.truth(record.held_out.rows)
    own = record.candidates[0].outputs
    target = quantiles.target_
    columns = [
        mean_pinball_loss((y * target.scale[0] + target.center[0]), own[:, k] * s + c, alpha=q)
        for k, (q, c, s) in enumerate(zip(LEVELS, target.center, target.scale, strict=True))
    ]
    expected = np.mean(columns) / target.scale[0]
    assert quantiles.path_["valid_loss"][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "quantile"}, r"'quantile' parameter .* for loss='quantile'.*quantile=None"),
        ({"quantile": 0.5}, r"None for all other losses. Got loss='squared_error'"),
        ({"loss": "quantile", "quantile": 1.0}, r"a number between 0 and 1.*Got 1\.0"),
        ({"loss": "quantile", "quantile": (0.9, 0.1)}, "increasing ones"),
        ({"loss": "quantile", "quantile": ()}, "increasing ones"),
        ({"loss": "quantile", "quantile": "0.5"}, "a number between 0 and 1"),
        ({"loss": "hinge"}, r"one of 'squared_error', .* or a callable.*Got 'hinge' instead\.$"),
        ({"loss": "my.loss"}, r"the name of a loss of your own, so give it with set_params\(loss="),
    ],
)
def test_losses_and_quantiles_are_checked(settings, words):
    x, y = noisy(50)
    with pytest.raises(ValueError, match=words):
        PSiLONRegressor(**QUICK, **settings).fit(x, y)


def test_several_quantiles_need_one_target():
    x, y = noisy(50)
    model = PSiLONRegressor(**{**QUICK, "cv": None}, loss="quantile", quantile=LEVELS)
    with pytest.raises(ValueError, match=r"needs one target. Got a target with 2 columns"):
        model.fit(x, np.stack([y, y], axis=1))
    model.fit(
        x[20:], y[20:].reshape(-1, 1), validation_data=(x[:20], y[:20])
    )  # one in two axes is one
    assert model.predict(x).shape == (50, 3)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"loss": "quantile", "quantile": LEVELS}, QuantileTarget),
        ({"loss": "quantile", "quantile": 0.3}, QuantileTarget),
        ({"loss": "poisson"}, CountTarget),
        ({"loss": "huber"}, NumberTarget),
    ],
)
def test_files_and_pickles_predict_the_same(settings, kind, tmp_path):
    frame, _, score = messy()
    model = PSiLONRegressor(**QUICK, **settings).fit(frame, np.round(np.exp(score)))
    model.save(tmp_path / "model")
    for again in (psilonnet.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert type(again.target_) is kind
        assert (again.predict(frame) == model.predict(frame)).all()
        assert again.measures_ == model.measures_
        assert again.summary() == model.summary()
        for a, b in zip(
            again.output_range(frame, 0.1), model.output_range(frame, 0.1), strict=True
        ):
            assert (a == b).all()


# Counts.


def counts(n=600, seed=0, factor=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    mean = factor * np.exp(0.5 + 0.8 * x[:, 0] - 0.4 * x[:, 1])
    return x, rng.poisson(mean), mean


@pytest.fixture(scope="module")
def counting():
    x, y, _ = counts()
    settings = {**SMALL, "max_steps": 300, "reg_strength": (1e-4, 1e-3)}
    return PSiLONRegressor(**settings, loss="poisson").fit(x, y)


@pytest.mark.parametrize("factor", size([1.0, 300.0], long=[0.05, 1.0, 300.0]))
def test_means_of_counts_are_found(factor, counting):
    model = counting
    if factor != 1:
        x, y, _ = counts(factor=factor)
        model = clone(counting).fit(x, y)
    new, y, mean = counts(1000, seed=1, factor=factor)
    found = model.predict(new)
    assert (found > 0).all()
    assert np.corrcoef(np.log(found), np.log(mean))[0, 1] > (0.8 if factor < 1 else 0.97)
    assert found.mean() == pytest.approx(mean.mean(), rel=0.25 if factor < 1 else 0.1)
    assert model.score(new, y) == pytest.approx(r2_score(y, found))


def test_certificates_of_counts_speak_of_factors(counting):
    x, _, _ = counts(20, seed=3)
    middle = counting.predict(x)
    low, high = counting.output_range(x, 0.2, method="local")
    assert (low > 0).all()
    np.testing.assert_allclose(high / middle, middle / low, rtol=1e-9)
    assert (high / middle <= np.exp(0.2 * counting.lipschitz_bound_) * (1 + 1e-9)).all()
    scale = np.array([code.scale for code in counting.encoder_.codes])
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = counting.predict(x + 0.2 * scale * rng.choice([-1, 1], size=x.shape))
        assert ((low <= found) & (found <= high)).all()
    total = counting.feature_sensitivity_.sum()
    said = r"the logarithm of the mean moves by at most (\S+), and the mean changes by a factor of "
    found = re.search(rf"{said}at most (\S+)\.$", counting.summary(), re.M)
    for word, limit in zip(found.groups(), (total, np.exp(total)), strict=True):
        assert limit <= float(word.replace(",", "")) <= 1.001 * limit  # four digits, rounded up


def test_counts_must_be_counts():
    x, y, _ = counts(120)
    model = PSiLONRegressor(**{**QUICK, "cv": None}, loss="poisson")
    with pytest.raises(ValueError, match=r"must be at least 0: .* Got -1 in some rows"):
        model.fit(x, y - 1 - y.min())
    with pytest.raises(ValueError, match=r"above 0 in some row"):
        model.fit(x, 0 * y)
    with pytest.raises(ValueError, match="must be at least 0"):
        model.fit(x, y, validation_data=(x, -1 - y))
    weight = (y >= 2).astype(float)
    model.fit(x, np.where(y < 2, -1, y), sample_weight=weight)  # rows of weight zero are dropped


def test_a_mean_never_overflows(counting):
    target = counting.target_
    with np.errstate(over="raise"):
        found = target.decode(np.array([[1e6], [-1e6]]))
    assert np.isfinite(found).all()
    assert found[1, 0] == 0


# Losses of one's own.


def expectile(outputs, targets):
    """Return the loss whose least expectation is at the expectile 0.9."""
    error = targets - outputs
    return (torch.where(error > 0, 0.9, 0.1) * error.square()).mean(dim=-1)


class Tilted:
    """A loss with a setting, which cannot be hashed."""

    __hash__ = None

    def __init__(self, level):
        self.level = level

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __call__(self, outputs, targets):
        error = targets - outputs
        return torch.maximum(self.level * error, (self.level - 1) * error).mean(dim=-1)


def test_a_loss_of_ones_own_is_minimised():
    x, y = noisy()
    settings = {**QUICK, "max_steps": 300}
    high = PSiLONRegressor(**settings, loss=expectile).fit(x, y)
    usual = PSiLONRegressor(**settings).fit(x, y)
    assert (high.predict(x) > usual.predict(x)).mean() > 0.9
    # At an expectile, the errors above weigh nine times those below.
    error = y - high.predict(x)
    assert error[error > 0].sum() * 9 == pytest.approx(-error[error < 0].sum(), rel=0.3)


def test_a_loss_of_ones_own_equals_the_named_one():
    x, y = noisy(100)
    own = PSiLONRegressor(**QUICK, loss=Tilted(0.5)).fit(x, y)
    named = PSiLONRegressor(**QUICK, loss="absolute_error").fit(x, y)
    np.testing.assert_allclose(own.predict(x), named.predict(x), rtol=1e-2)


def test_a_file_keeps_the_name_of_a_loss_of_ones_own(tmp_path):
    x, y = noisy(100)
    for loss, name in ((expectile, "expectile"), (Tilted(0.3), "Tilted")):
        model = PSiLONRegressor(**QUICK, loss=loss).fit(x, y)
        model.save(tmp_path / "model")
        again = psilonnet.load(tmp_path / "model")
        assert again.loss == f"{__name__}.{name}"
        assert (again.predict(x) == model.predict(x)).all()
        again.save(tmp_path / "again")
        assert psilonnet.load(tmp_path / "again").loss == again.loss
        with pytest.raises(ValueError, match="give it with set_params"):
            again.fit(x, y)
        again.set_params(loss=loss).fit(x, y)
        assert (pickle.loads(pickle.dumps(model)).predict(x) == model.predict(x)).all()


def test_a_lambda_is_saved_but_not_pickled(tmp_path):
    x, y = noisy(100)
    model = PSiLONRegressor(**QUICK, loss=lambda a, b: (a - b).abs().mean(dim=-1)).fit(x, y)
    model.save(tmp_path / "model")
    assert "<lambda>" in psilonnet.load(tmp_path / "model").loss
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda a, b: (a - b).square().mean(), r"one number per row.*returned shape \(\)"),
        (lambda a, b: (a - b).square(), r"returned shape \(2, 3, 1\) for 2 networks and 3 rows"),
        (lambda a, b: (a - b).detach().square().mean(dim=-1), "but no gradient"),
        (lambda a, b: 3.0, "returned 3.0"),
        (lambda a, b: (a - b).square().mean(dim=-1) - 50, "at least 0 in the mean over held-out"),
    ],
)
def test_losses_of_ones_own_are_checked(loss, words):
    x, y = noisy(100)
    with pytest.raises(ValueError, match=words):
        PSiLONRegressor(**QUICK, loss=loss).fit(x, y)


def test_models_with_losses_are_fitted_together():
    x, y = noisy(100)
    models = [
        PSiLONRegressor(**QUICK, loss=loss, quantile=q)
        for loss, q in (
            ("quantile", (0.1, 0.9)),
            ("quantile", (0.1, 0.9)),
            ("quantile", (0.2, 0.8)),
            (Tilted(0.3), None),
            (expectile, None),
            (expectile, None),
        )
    ]
    alone = [clone(model).fit(x, y).predict(x) for model in models]
    errors = psilonnet.estimators.fit_together(models, [(x, y)] * len(models))
    assert errors == [None] * len(models)
    for model, expected in zip(models, alone, strict=True):
        np.testing.assert_allclose(model.predict(x), expected, rtol=0.01)


def test_counterexamples_of_quantiles_and_counts(quantiles, counting):
    for model, x in ((quantiles, noisy(30, seed=5)[0]), (counting, counts(30, seed=5)[0])):
        middle = model.predict(x)
        rows, moved = model.counterexample(x, 0.5, high=1.02 * middle, low=0 * middle)
        assert len(rows) > 10
        found = model.predict(moved)
        assert (
            ((found > 1.02 * middle[rows]) | (found < 0)).reshape(len(rows), -1).any(axis=1).all()
        )
        low, high = model.output_range(x[rows], 0.5)
        assert ((low <= found) & (found <= high)).all()
