"""What can be shipped instead: how each library trains and writes a model."""

import pickle
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def write_ours(model: Any, folder: Path) -> dict[str, Path]:
    """Write a fitted model of ours for each runtime."""
    files = {"torch": folder / "model.psilon", "numpy": folder / "numpy"}
    model.save(files["torch"])
    model.export_numpy(files["numpy"])
    if find_spec("onnxruntime"):
        files["onnx"] = folder / "model.onnx"
        model.export_onnx(files["onnx"])
    return files


def fit_scikit_learn(kind: str, task: str, x: Any, y: Any) -> Any:
    """Fit scikit-learn's network or forest."""
    classes = task == "classification"
    if kind == "scikit-learn MLP":
        net = MLPClassifier if classes else MLPRegressor
        size = {"hidden_layer_sizes": (500, 500, 500), "early_stopping": True}
        return make_pipeline(StandardScaler(), net(**size, random_state=0)).fit(x, y)
    forest = RandomForestClassifier if classes else RandomForestRegressor
    return forest(300, n_jobs=1, random_state=0).fit(x, y)


def fit_booster(kind: str, task: str, x: Any, y: Any) -> Any:
    """Fit a booster with the settings of the rivals' table, at 300 trees."""
    ending = "Classifier" if task == "classification" else "Regressor"
    if kind == "LightGBM":
        model = getattr(import_module("lightgbm"), f"LGBM{ending}")
        return model(n_estimators=300, learning_rate=0.05, n_jobs=1, verbose=-1).fit(x, y)
    model = getattr(import_module("catboost"), f"CatBoost{ending}")
    quiet = {"verbose": False, "allow_writing_files": False}
    return model(iterations=300, thread_count=1, random_seed=0, **quiet).fit(x, y)


def fit_realmlp(kind: str, task: str, x: Any, y: Any) -> Any:
    """Fit RealMLP with its default settings."""
    module = import_module("pytabkit.models.sklearn.sklearn_interfaces")
    ending = "Classifier" if task == "classification" else "Regressor"
    model = getattr(module, f"RealMLP_TD_{ending}")(device="cpu", random_state=0, n_threads=1)
    return model.fit(x, y)


def write_pickle(model: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(model))


def write_lightgbm(model: Any, path: Path) -> None:
    model.booster_.save_model(path)


def write_catboost(model: Any, path: Path) -> None:
    model.save_model(str(path))


# Name: what must be installed, and how it is fitted and written.
PEERS: dict[str, tuple[str, Callable[..., Any], Callable[[Any, Path], None]]] = {
    "scikit-learn MLP": ("sklearn", fit_scikit_learn, write_pickle),
    "random forest": ("sklearn", fit_scikit_learn, write_pickle),
    "LightGBM": ("lightgbm", fit_booster, write_lightgbm),
    "CatBoost": ("catboost", fit_booster, write_catboost),
    "RealMLP": ("pytabkit", fit_realmlp, write_pickle),
}


def write_peers(task: str, x: Any, y: Any, folder: Path) -> dict[str, Path]:
    """Fit and write every peer that is installed."""
    files = {}
    for name, (package, fit, write) in PEERS.items():
        if find_spec(package):
            files[name] = folder / name.replace(" ", "_")
            write(fit(name, task, x, y), files[name])
    return files
