"""Quantiles are sorted and counts are means in ONNX Runtime, too."""

import numpy as np
import onnxruntime
import pytest

from deploy.models_with_losses import LOSSES, counted, crossed, fitted
from psilonnet.deploy import onnx_inputs


def predicted(model, frame, path):
    model.export_onnx(path)
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, onnx_inputs(frame, session))
    return found


@pytest.mark.parametrize("name", LOSSES)
def test_files_predict_the_same(name, tmp_path):
    model, (frame, _) = fitted(name), counted(seed=1)
    found = predicted(model, frame, tmp_path / "model.onnx")
    assert found.shape == model.predict(frame).shape
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-5, atol=1e-5)


def test_quantiles_in_files_are_sorted(tmp_path):
    model, (frame, _) = crossed(fitted("quantiles")), counted(seed=1)
    found = predicted(model, frame, tmp_path / "model.onnx")
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-5, atol=1e-5)
