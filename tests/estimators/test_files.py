"""Model files: the same predictions, small, and never trusted."""

import math
import os
import pickle
import random
import re
import struct
import tracemalloc
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch
from torch.overrides import TorchFunctionMode

import psilonnet
from psilonnet import ModelFileError, PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy import write_model_file
from psilonnet.deploy.model_file import read_model_file
from psilonnet.deploy.predictor import Predictor

SMALL = {
    "width": 8,
    "depth": 2,
    "max_steps": 5,
    "random_state": 0,
    "reg_strength": 1e-3,
    "knots": 0,
}
MUTATIONS = int(os.environ.get("PSILONNET_MUTATIONS", "20000"))


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y", "z"], n)})
    frame.loc[::7, "a"] = np.nan
    return frame, rng.integers(0, 3, n)


MODELS = {
    "classifier": PSiLONClassifier(**SMALL),
    "binary": PSiLONClassifier(**SMALL, n_members=2, class_weight={0: 1.0, 1: 2.0}),
    "knots": PSiLONClassifier(**{**SMALL, "knots": 4}, scaling="robust"),
    "crelu": PSiLONRegressor(**SMALL, architecture="crelu"),
    "pruned": PSiLONRegressor(**SMALL, architecture="resnet", prune=True),
    "chosen": PSiLONRegressor(**{**SMALL, "reg_strength": (1e-3, 1e-2)}, validation=3),
    "targets": PSiLONRegressor(**SMALL),
}


def fitted(name):
    frame, numbers = table()
    y = numbers
    if name == "binary":
        y = np.array(["no", "yes"])[numbers % 2]
    if name == "targets":
        y = np.stack([numbers, -numbers], axis=1)
    model = MODELS[name]
    if name == "binary":
        model = model.set_params(class_weight={"no": 1.0, "yes": 2.0})
    return model.fit(frame, y), frame


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
    assert again.path_ == model.path_
    assert again.held_out_score_ == model.held_out_score_
    assert again.n_rows_ == model.n_rows_ == 60
    assert again.feature_names_in_.tolist() == ["a", "b"]
    assert again.fit(frame, np.resize(getattr(model, "classes_", [0, 1]), 60)) is again


def test_file_is_hardly_larger_than_its_parameters(tmp_path):
    frame, y = table()
    model = PSiLONClassifier(**{**SMALL, "width": 200, "depth": 3}).fit(frame, y)
    model.save(tmp_path / "model")
    own = sum(4 * p.numel() for p in model.net_.parameters())
    assert (tmp_path / "model").stat().st_size <= 1.05 * own + 32_000


def test_what_was_fitted_is_saved_whatever_has_been_set_since(tmp_path):
    class Own(PSiLONClassifier):
        pass

    frame, numbers = table()
    labels = numbers.astype(">i8")
    model = Own(**{**SMALL, "knots": range(2, 4)}, architecture="crelu").fit(frame, labels)
    model.set_params(architecture="mlp", n_members=5)
    model.save(tmp_path / "model")
    loaded = psilonnet.load(tmp_path / "model")
    assert type(loaded) is PSiLONClassifier
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert "average of 5" not in model.summary()


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


def promises(model, frame):
    """Return what a model says of rows, as one array per question."""
    if isinstance(model, PSiLONClassifier):
        return [
            model.predict_proba(frame),
            model.certified_radius(frame),
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
            said.append(promises(model, frame))
            said.append(promises(pickle.loads(pickle.dumps(model)), frame))
    narrow, wide = (read_model_file(tmp_path / f"torch.float{bits}") for bits in (32, 64))
    assert narrow[0] == wide[0]
    assert all(t.dtype == torch.float32 and t.equal(wide[1][name]) for name, t in narrow[1].items())
    with default_dtype(torch.float64):
        said.append(promises(psilonnet.load(tmp_path / "torch.float32"), frame))
    said.append(promises(psilonnet.load(tmp_path / "torch.float64"), frame))
    for answers in said[1:]:
        for answer, first in zip(answers, said[0], strict=True):
            np.testing.assert_array_equal(answer, first)


def test_exports_do_not_depend_on_the_default_dtype(tmp_path):
    model, frame = fitted("knots")
    expected = model.predict_proba(frame)
    for dtype in (torch.float32, torch.float64):
        with default_dtype(dtype):
            model.export_numpy(tmp_path / str(dtype))
            model.export_onnx(tmp_path / f"{dtype}.onnx")
        predictor = Predictor(tmp_path / str(dtype))
        np.testing.assert_allclose(predictor.predict_proba(frame), expected, rtol=1e-9)
    onnx = [(tmp_path / f"{dtype}.onnx").read_bytes() for dtype in (torch.float32, torch.float64)]
    assert onnx[0] == onnx[1]


def test_unnamed_columns_stay_unnamed(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    PSiLONRegressor(**SMALL).fit(x, x[:, 0]).save(tmp_path / "model")
    assert not hasattr(psilonnet.load(tmp_path / "model"), "feature_names_in_")


def test_missing_file_and_foreign_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file at"):
        psilonnet.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="not a model file"):
        psilonnet.load(tmp_path / "text")


def test_other_format_is_refused_with_the_remedy(tmp_path, monkeypatch):
    model, _ = fitted("classifier")
    monkeypatch.setattr("psilonnet.deploy.model_file.FORMAT", 99)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"format 1\..*has format 99.*the version"):
        psilonnet.load(tmp_path / "model")


def test_lies_with_a_right_checksum_are_refused(tmp_path):
    model, _ = fitted("knots")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    lies = {
        "kind": "os.system",
        "parameters": {**manifest["parameters"], "width": -1},
        "encoder": {**manifest["encoder"], "names": ["a", "a"]},
        "target": {**manifest["target"], "temperature": 0.0},
        "members": {**manifest["members"], "reg_strength": ["much"]},
        "path": [1, 2],
        "n_iter": 1e99,
        "n_rows": 0,
        "held_out_score": 1.5,
        "named": "yes",
    }
    for key, lie in lies.items():
        write_model_file(tmp_path / "lie", {**manifest, key: lie}, tensors)
        with pytest.raises(ModelFileError):
            psilonnet.load(tmp_path / "lie")
    for name, tensor in tensors.items():
        for lie in (tensor.double()[..., None], tensor * float("nan")):
            write_model_file(tmp_path / "lie", manifest, {**tensors, name: lie})
            with pytest.raises(ModelFileError):
                psilonnet.load(tmp_path / "lie")
        fewer = {k: v for k, v in tensors.items() if k != name}
        write_model_file(tmp_path / "lie", manifest, fewer)
        with pytest.raises(ModelFileError):
            psilonnet.load(tmp_path / "lie")


def mutate_bytes(data, chance):
    data = bytearray(data)
    kind = chance.randrange(5)
    if kind == 0:
        for _ in range(chance.choice([1, 1, 2, 8])):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif kind == 1:
        del data[chance.randrange(len(data)) :]
    elif kind == 2:
        begin = chance.randrange(len(data))
        del data[begin : begin + chance.randrange(1, 40)]
    elif kind == 3:
        begin = chance.randrange(len(data))
        data[begin:begin] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 9)))
    else:  # the length of the header
        data[:8] = struct.pack("<Q", chance.choice([0, 1, 7, len(data), 2**31, 2**63, 2**64 - 1]))
    return bytes(data)


def mutate_manifest(value, chance):
    """Change one leaf of a manifest, or drop or repeat an entry."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: mutate_manifest(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:place] + value[place + 1 :]
        return [*value[:place], mutate_manifest(value[place], chance), *value[place + 1 :]]
    return chance.choice(
        [None, True, -1, 0, 1, 2, 10**9, 10**400, 1e308, -0.5, float("nan"), float("inf"), "",
         "x", "x" * 100, "../../x", [], {}, [[]], {"a": {}}, "mlp", "resnet", "<U99999999", "|V9"]
    )  # fmt: skip


def mutate_sizes(tensors, chance):
    """Declare other sizes, in one tensor or in all: what was 8 long is 0, 1 or huge everywhere."""
    sizes = sorted({size for tensor in tensors.values() for size in tensor.shape})
    new = {size: chance.choice([0, 0, 1, 2, 2**12, 2**20]) for size in chance.sample(sizes, 2)}
    changed = chance.choice([list(tensors), [chance.choice(sorted(tensors))]])
    return {
        name: resized(tensor, new, chance) if name in changed else tensor
        for name, tensor in tensors.items()
    }


def resized(tensor, new, chance):
    shape = [new.get(size, size) for size in tensor.shape]
    if math.prod(shape) > 10_000:  # a file holds what it declares: a huge tensor is empty
        shape[chance.randrange(len(shape))] = 0
    return tensor.new_ones(shape)


class LargestTensor(TorchFunctionMode):
    """Notes the bytes of the largest tensor that is made; tracemalloc does not see them."""

    most = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and not made.is_meta:
            self.most = max(self.most, made.untyped_storage().nbytes())
        return made


def attempt(path, watched):
    """Load a file: it must give a model, or a ModelFileError, in little memory."""
    if not watched:
        return load_or_none(path)
    tracemalloc.start()
    with LargestTensor() as tensor:
        model = load_or_none(path)
    taken = max(tracemalloc.get_traced_memory()[1], tensor.most)
    tracemalloc.stop()
    size = path.stat().st_size
    assert taken < 2 * size + 400_000, f"{taken} bytes for a file of {size}"
    return model


def load_or_none(path):
    try:
        return psilonnet.load(path)
    except ModelFileError:
        return None


@pytest.mark.parametrize(
    "shape", [(2**21, 0, 64), (1, 0, 2**27), (2**27, 0, 2), (0, 8, 2**27), (2**40, 0, 2**10)]
)
def test_sizes_are_checked_before_memory_is_taken(shape, tmp_path):
    model, _ = fitted("knots")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    columns = tensors["0.direction"].shape[-1]
    write_model_file(
        tmp_path / "lie", manifest, {**tensors, "0.direction": torch.ones(*shape, columns)}
    )
    assert (tmp_path / "lie").stat().st_size < 6000
    assert attempt(tmp_path / "lie", watched=True) is None


def test_model_without_members_is_refused(tmp_path):
    model, _ = fitted("crelu")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    none = {name: tensor[:0] if tensor.dim() else tensor for name, tensor in tensors.items()}
    write_model_file(tmp_path / "lie", manifest, none)
    with pytest.raises(ModelFileError, match=r"'0\.bias' is empty"):
        psilonnet.load(tmp_path / "lie")


def test_long_labels_take_no_memory(tmp_path):
    model, _ = fitted("binary")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    labels = sorted([*map(str, range(2000)), "x" * 20_000])  # as an array of words: 160 MB
    target = {**manifest["target"], "classes": labels}
    write_model_file(tmp_path / "lie", {**manifest, "target": target}, tensors)
    assert attempt(tmp_path / "lie", watched=True) is None


def check_prediction(model, frame):
    """A strange model predicts, or says in words what does not fit its columns."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            said = str(len(model.predict(frame)))
        except ValueError as error:
            said = str(error)
    assert re.search(f"^{len(frame)}$|feature names|same kind|features, but", said)


@pytest.fixture
def fast_folder(tmp_path):
    """A folder in memory where there is one: each file that is written is synced to its disk."""
    memory = Path("/dev/shm")
    if memory.is_dir():
        with TemporaryDirectory(dir=memory) as folder:
            yield Path(folder)
    else:
        yield tmp_path


def test_mutated_files_load_or_are_refused(fast_folder):
    chance = random.Random(0)
    files, contents = [], []
    for name in ("binary", "knots", "pruned", "chosen"):
        fitted(name)[0].save(fast_folder / name)
        files.append((fast_folder / name).read_bytes())
        contents.append(read_model_file(fast_folder / name))
    path, loaded = fast_folder / "mutant", 0
    frame, _ = table(3)
    for k in range(MUTATIONS):
        manifest, tensors = chance.choice(contents)
        if k % 2:
            path.write_bytes(mutate_bytes(chance.choice(files), chance))
        elif k % 6 == 0:
            write_model_file(path, manifest, mutate_sizes(tensors, chance))
        else:
            mutant = mutate_manifest(manifest, chance)
            while not isinstance(mutant, dict):
                mutant = mutate_manifest(manifest, chance)
            write_model_file(path, mutant, tensors)
        model = attempt(path, watched=k % 10 < 2 or k % 6 == 0)
        if model is not None:
            loaded += 1
            if loaded % 20 == 0:
                check_prediction(model, frame)
    assert loaded > 0


def test_model_of_a_device_that_is_not_there_is_read(tmp_path):
    frame, labels = table()
    model = PSiLONClassifier(**SMALL).fit(frame, labels)
    model.device = "cuda:7"
    model.save(tmp_path / "m.psilon")
    loaded = psilonnet.load(tmp_path / "m.psilon")
    assert (loaded.predict(frame) == model.predict(frame)).all()
    with pytest.raises(ValueError, match="'device' parameter"):
        loaded.fit(frame, labels)
