"""The temperature: the least held-out loss where rows are many, near 1 where they are few."""

import csv
from pathlib import Path

import numpy as np
import pytest

from psilonnet.estimators.class_target import TEMPERATURE_ERRORS, fit_temperature


def ones(n):
    """Return weights and counts of n rows that are all alike."""
    return np.ones(n), np.ones(n)


RESULTS = Path(__file__).parents[2] / "experiments" / "results" / "temperature.csv"


def test_temperature_minimises_the_loss_of_many_rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4000, 1)) * 3
    y = (rng.random(4000) < 1 / (1 + np.exp(-logits[:, 0] / 2))).astype(float)
    assert fit_temperature(logits, y, *ones(4000)) == pytest.approx(2.0, rel=0.1)
    assert fit_temperature(logits, y, *ones(4000)) == pytest.approx(
        fit_temperature(logits, y, *ones(4000), standard_errors=0), rel=0.1
    )
    wide = rng.normal(size=(4000, 3))
    chosen = wide.argmax(axis=1).astype(float)
    assert fit_temperature(wide, chosen, *ones(4000)) < 0.2


@pytest.mark.parametrize("rows", [4, 10, 20, 100, 1000])
def test_rows_that_are_all_right_do_not_drive_the_temperature_to_its_end(rows):
    y = (np.arange(rows) % 2).astype(float)
    logits = np.random.default_rng(rows).uniform(1, 4, size=(rows, 1)) * (2 * y[:, None] - 1)
    assert fit_temperature(logits, y, *ones(rows), standard_errors=0) < 0.15
    shrunk = fit_temperature(logits, y, *ones(rows))
    assert shrunk == 1 if rows <= 20 else 0.3 < shrunk < 1
    # All wrong: as many rows say that the logits are too large.
    assert fit_temperature(logits, 1 - y, *ones(rows)) >= 1


def test_temperature_depends_on_relative_weights_only():
    rng = np.random.default_rng(0)
    logits, weight = rng.normal(size=(500, 3)), rng.random(500)
    y = np.where(rng.random(500) < 0.9, logits.argmax(axis=1), rng.integers(0, 3, 500))
    first = fit_temperature(logits, y, weight, np.ones(500))
    assert first < 0.9
    assert fit_temperature(logits, y, 1000 * weight, np.ones(500)) == pytest.approx(first, rel=1e-9)
    assert first != pytest.approx(fit_temperature(logits, y, *ones(500)), rel=1e-3)


def test_a_row_that_stands_for_many_counts_as_many():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(60, 1))
    y = np.where(rng.random(60) < 0.9, logits[:, 0] > 0, logits[:, 0] < 0).astype(float)
    counts = rng.integers(1, 12, 60).astype(float)
    rows = np.repeat(np.arange(60), counts.astype(int))
    repeated = fit_temperature(logits[rows], y[rows], *ones(len(rows)))
    assert repeated < 0.9
    assert fit_temperature(logits, y, counts, counts) == pytest.approx(repeated, rel=1e-9)
    assert fit_temperature(logits, y, *ones(60)) > repeated


def test_calibration_lowers_the_loss_on_forty_tables():
    with RESULTS.open() as file:
        lines = list(csv.DictReader(file))
    losses = {}
    for line in lines:
        losses.setdefault(line["errors"], []).append(float(line["loss"]))
    means = {way: np.mean(values) for way, values in losses.items()}
    assert {len(values) for values in losses.values()} == {40}
    assert means[f"{TEMPERATURE_ERRORS:g}"] < 0.97 * means["off"]
