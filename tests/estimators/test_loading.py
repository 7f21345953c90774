"""Model files are never trusted."""

import random
import re
import tracemalloc
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

import psilonnet
from estimators.mutations import mutate_bytes, mutate_manifest, mutate_sizes
from estimators.saved_models import fitted, table
from psilonnet import ModelFileError
from psilonnet.deploy import write_model_file
from psilonnet.deploy.model_file import read_model_file
from sizes import size

MUTATIONS = size(500, long=50_000)


def test_missing_file_and_foreign_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no model file at"):
        psilonnet.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="folder of export_numpy is read by"):
        psilonnet.load(tmp_path)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="not a model file"):
        psilonnet.load(tmp_path / "text")


def test_other_format_is_refused_with_the_remedy(tmp_path, monkeypatch):
    model, _ = fitted("classifier")
    monkeypatch.setattr("psilonnet.deploy.model_file.FORMAT", 99)
    model.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(
        ModelFileError, match=r"formats 2 to 3\..*has format 99.*the version.*fit again"
    ):
        psilonnet.load(tmp_path / "model")


def test_lies_with_a_right_checksum_are_refused(tmp_path):
    model, _ = fitted("pieces")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    lies = {
        "kind": "os.system",
        "parameters": {**manifest["parameters"], "width": -1},
        "encoder": {**manifest["encoder"], "names": ["a", "a"]},
        "target": {**manifest["target"], "temperature": 0.0},
        "members": {**manifest["members"], "reg_strength": ["much"]},
        "parts": [],
        "sparsity": {"near": 0.5, "exact": 1.5},
        "path": [1, 2],
        "n_iter": 1e99,
        "n_rows": 0,
        "held_out_score": 1.5,
        "named": "yes",
        "errors": "all rows",
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


def wrong_parts(facts):
    """Return what cannot be true of the parts of a file, with words of the message."""
    (fact,) = facts
    half = [share / 2 for share in fact["weight"]]
    return {
        "no networks": [],
        "part 1 is not described": [fact, {}],
        "no tensor '1.inputs'": [fact, fact],
        "sum to 1": [{**fact, "weight": half}],
        "between 0 and 1": [{**fact, "weight": [-half[0], *half[1:]]}],
        "sizes of layer '0.0'": [{**fact, "weight": half * 2}],
        "layers are unknown": [{**fact, "splits": ["relu", *fact["splits"][1:]]}],
        "pieces": [{**fact, "splits": [fact["splits"][0], "crelu", *fact["splits"][2:]]}],
        "nothing is known": [{**fact, "splits": fact["splits"][:-1]}],
        "no tensor '0.3.weight'": [{**fact, "splits": [*fact["splits"], "relu"]}],
        "does not hold numbers": [{**fact, "bent": [True] * len(fact["bent"])}],
        "moved that is not bent": [{**fact, "bent": [False] * len(fact["bent"])}],
        "no map of columns": [{**fact, "bent": [1] * len(fact["bent"])}],
        "a map is misshapen": [{**fact, "bent": fact["bent"][1:]}],
        "must be one of": [{**fact, "bend": "sideways"}],
    }


def wrong_tensors(tensors):
    """Return the same of tensors of the right types and shapes."""
    inputs, weight, bias = (tensors[f"0.{name}"] for name in ("inputs", "2.weight", "2.bias"))
    return {
        "not sorted columns": {"0.inputs": inputs.flip(0)},
        "sorted columns": {"0.inputs": inputs + 1},
        "inputs are not": {"0.inputs": inputs - 1},
        "knots are not sorted": {"0.0.edges": tensors["0.0.edges"].flip(1)},
        "knots are misshapen": {"0.0.edges": tensors["0.0.edges"][:, 1:]},
        "scales above 0": {"0.scale": (tensors["0.scale"] == 1).double()},
        "outputs of the target": {"0.2.weight": weight[:, 1:], "0.2.bias": bias[:, 1:]},
        "biases of layer '0.2'": {"0.2.bias": bias[:, 1:]},
        "known of the tensors": {"0.1.edges": tensors["0.0.edges"].clone()},
    }


def test_wrong_networks_are_refused_in_words(tmp_path):
    model, _ = fitted("pieces")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    lies = [
        (said, {**manifest, "parts": p}, tensors)
        for said, p in wrong_parts(manifest["parts"]).items()
    ]
    lies += [(said, manifest, {**tensors, **t}) for said, t in wrong_tensors(tensors).items()]
    for said, facts, lie in lies:
        write_model_file(tmp_path / "lie", facts, lie)
        with pytest.raises(ModelFileError, match=said):
            psilonnet.load(tmp_path / "lie")


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
    model, _ = fitted("pieces")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    columns = tensors["0.0.weight"].shape[-1]
    write_model_file(
        tmp_path / "lie", manifest, {**tensors, "0.0.weight": torch.ones(*shape, columns)}
    )
    assert (tmp_path / "lie").stat().st_size < 6000
    assert attempt(tmp_path / "lie", watched=True) is None


def test_model_without_members_is_refused(tmp_path):
    model, _ = fitted("crelu")
    model.save(tmp_path / "model")
    manifest, tensors = read_model_file(tmp_path / "model")
    none = {name: tensor[:0] if tensor.dim() else tensor for name, tensor in tensors.items()}
    write_model_file(tmp_path / "lie", manifest, none)
    with pytest.raises(ModelFileError, match=r"'0\.0\.bias' is empty"):
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
    for name in ("binary", "pieces", "pruned", "several"):
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
