"""How each library reads a model and predicts; nothing is imported that the model does not need."""

import json
import logging
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np

Predict = Callable[[Any], Any]  # rows, as an array or as a frame, to predictions


def read_torch(path: Path) -> Predict:
    return import_module("psilonnet").load(path).predict


def read_numpy(path: Path) -> Predict:
    """Use the predictor that was shipped with the model."""
    spec = spec_from_file_location("predictor", path / "predictor.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Predictor(path).predict


def read_onnx(path: Path) -> Predict:
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    output = session.get_outputs()[0].name

    def predict(rows: Any) -> Any:
        if isinstance(rows, np.ndarray):
            cells = {name: rows[:, k : k + 1] for k, name in enumerate(names)}
        else:
            cells = {name: rows[name].to_numpy()[:, None] for name in names}
        return session.run([output], cells)[0]

    return predict


def read_pickle(path: Path) -> Predict:
    return pickle.loads(path.read_bytes()).predict


def read_lightgbm(path: Path) -> Predict:
    booster = import_module("lightgbm").Booster(model_file=path)
    return lambda rows: booster.predict(rows, num_threads=1)


def read_catboost(path: Path) -> Predict:
    model = import_module("catboost").CatBoost().load_model(str(path))
    return lambda rows: model.predict(rows, thread_count=1)


def read_realmlp(path: Path) -> Predict:
    """Read a model that was fitted on an array, and wants one."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # it logs every call
    model = pickle.loads(path.read_bytes())
    return lambda rows: model.predict(np.asarray(rows))


READERS: dict[str, Callable[[Path], Predict]] = {
    "torch": read_torch,
    "numpy": read_numpy,
    "onnx": read_onnx,
    "LightGBM": read_lightgbm,
    "CatBoost": read_catboost,
    "RealMLP": read_realmlp,
}


def read(name: str, path: Path) -> Predict:
    """Read a contender, such as "numpy", "numpy pruned" or "LightGBM"."""
    return READERS.get(name.removesuffix(" pruned"), read_pickle)(path)


def size_of(path: Path) -> int:
    """Return the bytes of a file or folder; the code in an exported folder does not count."""
    if path.is_file():
        return path.stat().st_size
    return sum(f.stat().st_size for f in path.iterdir() if f.suffix in (".npz", ".json"))


def memory_of(name: str, path: Path, rows: Path) -> float:
    """Return the resident megabytes of a process that predicts one row (Linux only)."""
    code = (
        "import sys, numpy as np; from pathlib import Path;"
        "from benchmarks.readers import read;"
        "read(sys.argv[1], Path(sys.argv[2]))(np.load(sys.argv[3]));"
        "facts = dict(line.split(':') for line in open('/proc/self/status'));"
        "print(int(facts['VmRSS'].split()[0]) / 1024)"
    )
    words = [sys.executable, "-W", "ignore", "-c", code, name, str(path), str(rows)]
    done = run(words, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))
