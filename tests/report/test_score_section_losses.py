"""What the page tells of quantiles and counts: D² beside or instead of R², and factors."""

import numpy as np
import pytest

from psilonnet import Design, PSiLONRegressor

SMALL = {
    "width": 8, "depth": 1, "max_steps": 60, "learning_rate": 2e-2, "random_state": 0,
    "reg_strength": 1e-3, "designs": [Design()], "cv": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words", "never"),
    [
        (
            {"loss": "quantile", "quantile": (0.1, 0.9)},
            ["D² of the pinball loss", "the quantiles 0.1, 0.9", "each predicted quantile moves"],
            "R²",
        ),
        (
            {"loss": "quantile", "quantile": 0.9},
            ["R²", "D² of the pinball loss", "the quantile 0.9"],
            "quantiles",
        ),
        (
            {"loss": "poisson"},
            ["R²", "D² of the Poisson deviance", "the mean of counts", "changes by a factor"],
            "quantile",
        ),
        ({"loss": "huber"}, ["R²", "one number"], "D²"),
    ],
)
def test_pages_of_losses(settings, words, never, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2))
    y = rng.poisson(np.exp(1 + x[:, 0]))
    model = PSiLONRegressor(**SMALL, **settings).fit(x, y)
    model.report(tmp_path / "card.html", x[:30], y[:30])
    page = (tmp_path / "card.html").read_text()
    for word in words:
        assert word in page
    assert never not in page
