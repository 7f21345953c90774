"""Ways to calibrate: what they are fitted on, and what they are judged by."""

import numpy as np
import pytest

from experiments.studies import temperature


def test_all_ways_to_calibrate_come_from_one_fit(monkeypatch):
    monkeypatch.setattr(temperature, "SETTINGS", {**temperature.SETTINGS, "max_steps": 30})
    found = temperature.compute({"table": "iris", "rows": 60, "seed": 0}, data="none")
    assert set(found) == {"off", *(f"{errors:g}" for errors in temperature.TRIED)}
    assert found["off"]["temperature"] == 1
    away = [abs(np.log(found[f"{errors:g}"]["temperature"])) for errors in temperature.TRIED]
    assert away == sorted(away, reverse=True)  # the more errors, the nearer to 1
    assert all(0 < way["loss"] < 3 for way in found.values())


def test_two_classes_have_one_logit():
    logits, truth = np.array([2.0, -1.0]), np.array([1, 1])
    pairs = np.stack([np.zeros(2), logits], axis=1)
    found = [temperature.log_loss_at(2.0, own, truth, [0, 1]) for own in (logits, pairs)]
    expected = np.mean(np.log1p(np.exp(-logits / 2)))
    assert found == pytest.approx([expected] * 2)
