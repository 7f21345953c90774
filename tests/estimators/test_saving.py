"""A model that was saved is the same when it is loaded, and its file is small."""

import copy
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import psilonnet
from estimators.saved_models import MODELS, SEVERAL, SMALL, fitted, table
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy.model_file import read_model_file
from psilonnet.deploy.predictor import Predictor


@pytest.mark.parametrize("name", MODELS)
def test_loaded_model_is_the_same_to_the_last_bit(name, tmp_path):
    model, frame = fitted(name)
    path = tmp_path / "model.psilon"
    model.save(path)
    again = psilonnet.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            first, second = getattr(model, method)(frame), getattr(again, method)(frame)
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype
    assert again.summary() == model.summary()
    assert (again.near_sparsity_, again.sparsity_) == (model.near_sparsity_, model.sparsity_)
    assert again.designs_ == model.designs_
    assert again.members_ == model.members_
    assert again.path_ == model.path_
    assert again.held_out_score_ == model.held_out_score_
    assert again.n_rows_ == model.n_rows_ == 60
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert again.fit(frame, np.resize(getattr(model, "classes_", [0, 1]), 60)) is again


def test_file_is_hardly_larger_than_its_parameters(tmp_path):
    frame, y = table()
    model = PSiLONClassifier(**{**SMALL, "width": 200, "depth": 3}).fit(frame, y)
    model.save(tmp_path / "model")
    layers = [layer for part in model.net_.parts for layer in part.net.layers]
    own = sum(4 * (layer.weight.numel() + layer.bias.numel()) for layer in layers)
    assert (tmp_path / "model").stat().st_size <= 1.05 * own + 32_000


def test_a_parameter_that_a_file_could_not_be_read_with_is_refused(tmp_path):
    model, _ = fitted("crelu")
    model = copy.deepcopy(model)  # its parameters are those of the others, too
    model.set_params(width=-3)
    with pytest.raises(ValueError, match=r"'width' parameter .* whole number of at least 1"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_what_was_fitted_is_saved_whatever_has_been_set_since(tmp_path):
    class Own(PSiLONClassifier):
        pass

    frame, numbers = table()
    labels = numbers.astype(">i8")
    model = Own(**{**SMALL, "designs": SEVERAL}).fit(frame, labels)
    networks = model.net_.members
    model.set_params(designs="auto", width=4, cv=networks + 1)
    model.save(tmp_path / "model")
    loaded = psilonnet.load(tmp_path / "model")
    assert type(loaded) is PSiLONClassifier
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.designs_ == model.designs_ == SEVERAL
    assert f"PSiLONClassifier on 2 columns, average of {networks} networks" in loaded.summary()
    assert f"Own on 2 columns, average of {networks} networks" in model.summary()


def test_models_are_loaded_and_used_in_inference_mode(tmp_path):
    model, frame = fitted("classifier")
    model.save(tmp_path / "model")
    with torch.inference_mode():
        loaded = psilonnet.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def statements(model, frame):
    """Return what a model says of rows, as one array per question."""
    if isinstance(model, PSiLONClassifier):
        return [
            model.predict_proba(frame),
            model.certified_radius(frame, method="global"),
            model.certified_radius(frame, method="local"),
        ]
    return [model.predict(frame), *model.output_range(frame, 0.1)]


@pytest.mark.parametrize("name", MODELS)
def test_models_do_not_depend_on_the_default_dtype(name, tmp_path):
    said = []
    for dtype in (torch.float32, torch.float64):
        with default_dtype(dtype):
            model, frame = fitted(name)
            model.save(tmp_path / str(dtype))
            said.append(statements(model, frame))
            said.append(statements(pickle.loads(pickle.dumps(model)), frame))
    narrow, wide = (read_model_file(tmp_path / f"torch.float{bits}") for bits in (32, 64))
    assert narrow[0] == wide[0]
    assert all(t.equal(wide[1][name]) for name, t in narrow[1].items())
    assert {t.dtype for n, t in narrow[1].items() if n.count(".") == 2} == {torch.float32}
    with default_dtype(torch.float64):
        said.append(statements(psilonnet.load(tmp_path / "torch.float32"), frame))
    said.append(statements(psilonnet.load(tmp_path / "torch.float64"), frame))
    for answers in said[1:]:
        for answer, first in zip(answers, said[0], strict=True):
            np.testing.assert_array_equal(answer, first)


def test_numpy_export_does_not_depend_on_the_default_dtype(tmp_path):
    model, frame = fitted("pieces")
    expected = model.predict_proba(frame)
    for dtype in (torch.float32, torch.float64):
        with default_dtype(dtype):
            model.export_numpy(tmp_path / str(dtype))
        predictor = Predictor(tmp_path / str(dtype))
        np.testing.assert_allclose(predictor.predict_proba(frame), expected, rtol=1e-9)


def test_onnx_export_does_not_depend_on_the_default_dtype(tmp_path):
    pytest.importorskip("onnx")  # a release is tested without it
    model, _ = fitted("pieces")
    files = []
    for dtype in (torch.float32, torch.float64):
        with default_dtype(dtype):
            model.export_onnx(tmp_path / f"{dtype}.onnx")
        files.append((tmp_path / f"{dtype}.onnx").read_bytes())
    assert files[0] == files[1]


def test_numbers_that_are_not_of_float32_are_never_rounded_in_silence(tmp_path):
    model, _ = fitted("pieces")
    first = model.net_.parts[0].net.layers[0]
    for tensor in (first.weight, first.bias, first.edges):
        before = tensor[0, 0].clone()
        tensor[0, 0] += 2.0**-40
        with pytest.raises(RuntimeError, match=r"must be numbers of float32\. '0\.0\.\w+' holds"):
            model.save(tmp_path / "model")
        tensor[0, 0] = before
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "model")


def test_unnamed_columns_stay_unnamed(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    PSiLONRegressor(**SMALL).fit(x, x[:, 0]).save(tmp_path / "model")
    assert not hasattr(psilonnet.load(tmp_path / "model"), "feature_names_in_")


def test_model_of_a_device_that_is_not_there_is_read(tmp_path):
    frame, labels = table()
    model = PSiLONClassifier(**SMALL).fit(frame, labels)
    model.device = "cuda:7"
    model.save(tmp_path / "m.psilon")
    loaded = psilonnet.load(tmp_path / "m.psilon")
    assert (loaded.predict(frame) == model.predict(frame)).all()
    with pytest.raises(ValueError, match="'device' parameter"):
        loaded.fit(frame, labels)


def test_what_takes_a_model_apart_is_told_of_save():
    assert PSiLONRegressor().__reduce__()  # as skops asks
    fitted = PSiLONRegressor(**SMALL).fit(np.arange(60.0)[:, None], np.arange(60.0))
    with pytest.raises(TypeError, match=r"Use model\.save\(path\) and psilonnet\.load"):
        fitted.__reduce__()
    expected = fitted.predict([[3.0]])
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(fitted, protocol))
        assert again.predict([[3.0]]) == expected
    assert copy.deepcopy(fitted).predict([[3.0]]) == expected
