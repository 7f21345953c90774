"""The exported folder: the old one or the new one, and nothing but NumPy."""

import json
import os
import shutil
import signal
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from deploy.messy_table import QUICK, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy.predictor import Predictor


@pytest.mark.long
def test_pruned_export_is_small(tmp_path):
    X, y = messy()
    sizes = []
    for prune in (False, True):
        folder = tmp_path / str(prune)
        model = PSiLONRegressor(**{**QUICK, "width": 128, "max_steps": 400}, prune=prune)
        model.fit(X, y).export_numpy(folder)
        sizes.append((folder / "weights.npz").stat().st_size)
    assert sizes[1] < 0.25 * sizes[0]


def two_models():
    X, y = messy()
    return [PSiLONRegressor(**QUICK).fit(X, target) for target in (y, -y)], X


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


THREE = ["manifest.json", "predictor.py", "weights.npz"]


@contextmanager
def killed_at_file_operation(number):
    """Kill this process, which must be a child, at the given open, rename or removal of a file."""
    left = [number]

    def hook(event, args):
        if event in ("open", "os.rename", "os.remove"):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    yield


def export_and_die(model, folder, number):
    """Export in a child that is killed at one of its file operations; tell whether it was."""
    child = os.fork()
    if child == 0:
        try:
            with killed_at_file_operation(number):
                model.export_numpy(folder)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a child that it forks")
def test_killed_export_leaves_the_old_model_or_the_new_one(tmp_path):
    (old, new), X = two_models()
    folder = tmp_path / "exported"
    new.export_numpy(tmp_path / "other")  # both are computed before the first fork
    seen = []
    for number in range(1, 100):
        old.export_numpy(folder)
        assert names_in(folder) == THREE
        killed = export_and_die(new, folder, number)
        found = Predictor(folder).predict(X)
        seen.append("old" if np.allclose(found, old.predict(X), rtol=1e-9) else "new")
        np.testing.assert_allclose(found, (old if seen[-1] == "old" else new).predict(X), rtol=1e-9)
        if not killed:
            break
    assert not killed
    assert seen == sorted(seen, reverse=True)  # once it is the new one, it stays that
    assert seen.count("new") > 1  # also before the end
    assert names_in(folder) == THREE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a child that it forks")
def test_killed_first_export_is_no_model_or_a_whole_one(tmp_path):
    (model, _), X = two_models()
    model.export_numpy(tmp_path / "other")
    for number in range(1, 100):
        folder = tmp_path / str(number)
        killed = export_and_die(model, folder, number)
        if (folder / "manifest.json").exists():
            np.testing.assert_allclose(Predictor(folder).predict(X), model.predict(X), rtol=1e-9)
        model.export_numpy(folder)
        assert names_in(folder) == THREE
        if not killed:
            break


@pytest.mark.parametrize("name", THREE)
@pytest.mark.parametrize("text", ["print('mine')", '{"format": 1}', "[1]"])
def test_files_that_no_export_has_written_are_not_replaced(name, text, tmp_path):
    (model, _), _ = two_models()
    (tmp_path / name).write_text(text)
    with pytest.raises(FileExistsError, match=f"has '{name}': name another folder"):
        model.export_numpy(tmp_path)
    assert names_in(tmp_path) == [name]
    assert (tmp_path / name).read_text() == text


@contextmanager
def files_of_at_most(size):
    """Let every write behind so many bytes of a file fail, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 1000, 12_000])
def test_failed_export_leaves_what_was_there(size, tmp_path):
    (old, new), X = two_models()
    old.export_numpy(tmp_path / "exported")
    for folder in ("exported", "new"):
        with pytest.raises(OSError, match="File too large"), files_of_at_most(size):
            new.export_numpy(tmp_path / folder)
    assert names_in(tmp_path) == ["exported"]
    assert names_in(tmp_path / "exported") == THREE
    found = Predictor(tmp_path / "exported").predict(X)
    np.testing.assert_allclose(found, old.predict(X), rtol=1e-9)


def test_export_leaves_other_files_alone(tmp_path):
    (first, second), _ = two_models()
    (tmp_path / "notes.txt").write_text("mine")
    for model in (first, second):
        model.export_numpy(tmp_path)
    assert names_in(tmp_path) == sorted([*THREE, "notes.txt"])


def test_weights_of_another_export_are_refused(tmp_path):
    (first, second), _ = two_models()
    first.export_numpy(tmp_path / "a")
    second.export_numpy(tmp_path / "b")
    shutil.copy(tmp_path / "b" / "weights.npz", tmp_path / "a")  # a copy that was stopped half-way
    with pytest.raises(ValueError, match=r"weights.npz.*another.*copy the whole folder"):
        Predictor(tmp_path / "a")
    (tmp_path / "a" / "weights.npz").unlink()
    with pytest.raises(ValueError, match=r"weights.npz.*missing.*copy the whole folder"):
        Predictor(tmp_path / "a")


def environment_with_numpy(folder):
    """Make a virtual environment, lend it this one's NumPy, and return its Python."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    home = Path(np.__file__).parents[1]
    for part in home.glob("numpy*"):
        (packages / part.name).symlink_to(part)
    return str(folder / "venv" / "bin" / "python")


def test_export_needs_numpy_only(tmp_path):
    """An environment of its own that has NumPy, and nothing else that is not Python's."""
    X, y = messy()
    model = PSiLONClassifier(**QUICK).fit(X, y > y.mean())
    model.export_numpy(tmp_path / "model")
    X.to_json(tmp_path / "rows.json", orient="records", date_format="iso")
    script = tmp_path / "use.py"
    script.write_text(
        "import sys, json, datetime\n"
        "from importlib.util import find_spec\n"
        "for name in ('psilonnet', 'torch', 'sklearn', 'pandas', 'narwhals'):\n"
        "    assert find_spec(name) is None, name\n"
        "sys.path.insert(0, sys.argv[1] + '/model')\n"
        "from predictor import Predictor\n"
        "rows = json.load(open(sys.argv[1] + '/rows.json'))\n"
        "for row in rows:\n"
        "    row['when'] = datetime.datetime.fromisoformat(row['when'][:10])\n"
        "model = Predictor(sys.argv[1] + '/model')\n"
        "print(json.dumps([model.predict_proba(rows)[:, 1].tolist(),"
        " model.certified_radius(rows).tolist()]))\n"
    )
    done = subprocess.run(
        [environment_with_numpy(tmp_path), "-I", str(script), str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shares, radii = json.loads(done.stdout)
    np.testing.assert_allclose(shares, model.predict_proba(X)[:, 1], rtol=1e-9)
    np.testing.assert_allclose(
        radii, model.certified_radius(X, method="global"), rtol=1e-6, atol=1e-12
    )
