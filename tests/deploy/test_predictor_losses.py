"""Exported quantiles are sorted, and exported counts are means: as the model says, with ranges."""

import numpy as np
import pytest

from deploy.models_with_losses import LOSSES, counted, crossed, fitted
from psilonnet.deploy import LARGEST_LOG, Predictor


@pytest.mark.parametrize("name", LOSSES)
def test_exported_models_predict_and_certify_the_same(name, tmp_path):
    model, (frame, _) = fitted(name), counted(seed=1)
    model.export_numpy(tmp_path)
    exported = Predictor(tmp_path)
    np.testing.assert_allclose(exported.predict(frame), model.predict(frame), rtol=1e-12)
    found, expected = (
        exported.output_range(frame, 0.1),
        model.output_range(frame, 0.1, method="global"),
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_exported_quantiles_are_sorted(tmp_path):
    model, (frame, _) = crossed(fitted("quantiles")), counted(seed=1)
    model.export_numpy(tmp_path)
    exported = Predictor(tmp_path)
    raw = exported.raw(exported.encode(frame))
    assert (np.diff(raw, axis=1) < 0).any()
    found = exported.predict(frame)
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-12)
    assert exported.levels == [0.1, 0.5, 0.9]


def test_an_exported_mean_never_overflows(tmp_path):
    fitted("counts").export_numpy(tmp_path)
    with np.errstate(over="raise"):
        assert np.isfinite(Predictor(tmp_path)._finished(np.array([[LARGEST_LOG * 2]]))).all()
