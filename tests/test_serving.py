"""The server of the examples, in both of its ways: what it answers, and what it refuses."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from deploy.messy_table import QUICK, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from sizes import size

http = pytest.importorskip(
    "fastapi.testclient", reason="FastAPI is not there: .ci/long serving installs it"
)
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


def client_of(path, repo):
    """A client of ``examples/serve.py`` with a model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSILONNET_MODEL", str(path))
        spec = importlib.util.spec_from_file_location("serve", repo / "examples" / "serve.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return http.TestClient(module.app)  # an exception of the server is one of the test


def table():
    X, y = messy()
    return X.assign(waited=pd.to_timedelta(np.arange(len(X)) % 11, unit="h")), y


@pytest.fixture(scope="module")
def models():
    X, y = table()
    labels = np.array(["low", "high"])[(y > np.median(y)).astype(int)]
    return {
        "classifier": PSiLONClassifier(**QUICK).fit(X, labels),
        "regressor": PSiLONRegressor(**QUICK).fit(X, y),
    }


@pytest.fixture(scope="module")
def clients(models, repo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    found = {}
    for name, model in models.items():
        model.export_numpy(folder / name)
        model.export_onnx(folder / f"{name}.onnx")
        found[name, "numpy"] = client_of(folder / name, repo)
        found[name, "onnx"] = client_of(folder / f"{name}.onnx", repo)
    return found


def rows_of(frame):
    """Rows of JSON: dates in words, durations in days."""
    days = frame.waited / pd.Timedelta(days=1)
    return json.loads(frame.assign(waited=days).to_json(orient="records", date_format="iso"))


WAYS = pytest.mark.parametrize("way", ["numpy", "onnx"])


@WAYS
def test_server_predicts_as_the_model_does(way, models, clients):
    X, _ = table()
    answer = clients["classifier", way].post("/predict", json=rows_of(X))
    assert answer.status_code == 200
    assert answer.json()["prediction"] == models["classifier"].predict(X).tolist()
    expected = models["classifier"].predict_proba(X)
    np.testing.assert_allclose(answer.json()["probabilities"], expected, rtol=1e-5)
    answer = clients["regressor", way].post("/predict", json=rows_of(X[:1]))
    np.testing.assert_allclose(
        answer.json()["prediction"], models["regressor"].predict(X[:1]), rtol=1e-5
    )
    assert answer.json()["warnings"] == []
    assert clients["regressor", way].get("/columns").json()["when"] == "time"


def test_warnings_are_in_the_answer(clients):
    row = rows_of(table()[0][:1])[0]
    said = clients["regressor", "numpy"].post("/predict", json=[row | {"size": 1e6}]).json()
    assert "'size' (1 rows)" in said["warnings"][0]


BAD_CELLS = {
    "words for numbers": ("size", "many"),
    "a list for a number": ("size", [1.0]),
    "an object for a number": ("size", {"a": 1}),
    "a boolean for a number": ("size", True),
    "a number without end": ("size", float("inf")),
    "not a number": ("size", float("nan")),
    "a huge whole number": ("size", 10**400),
    "a word for a date": ("when", "today"),
    "a number for a date": ("when", 5),
    "a list for a word": ("town", ["Aa"]),
    "a word for a duration": ("waited", "long"),
    "a duration past all time": ("waited", 1e300),
    "half a character": ("size", "\ud800"),
}


@WAYS
@pytest.mark.parametrize("name", BAD_CELLS)
def test_bad_cells_are_answered_with_their_column(name, way, clients):
    column, cell = BAD_CELLS[name]
    good = rows_of(table()[0][:3])
    bad = [*good, good[0] | {column: cell}]
    answer = clients["classifier", way].post("/predict", content=json.dumps(bad))
    assert answer.status_code == 422
    assert f"Column '{column}' must hold" in answer.json()["detail"]


@WAYS
def test_bad_requests_are_answered(way, clients):
    client, row = clients["classifier", way], rows_of(table()[0][:1])[0]
    without = {name: cell for name, cell in row.items() if name != "age"}
    for body, status, words in (
        ("[{", 400, "must be JSON"),
        (b"\xff\xfe", 400, "must be JSON"),
        ("[" * 100_000, 400, "must be JSON"),
        ("", 400, "must be JSON"),
        ("{}", 422, "list of objects"),
        ("[1]", 422, "list of objects"),
        ("[]", 422, "1 to 10,000 rows. Got 0"),
        (json.dumps([row] * 10_001), 422, "1 to 10,000 rows. Got 10,001"),
        (" " * 8_000_001, 413, "at most 8,000,000 bytes"),
        (json.dumps([row, without]), 422, "Column 'age' is missing in row 1"),
    ):
        answer = client.post("/predict", content=body)
        assert answer.status_code == status, body[:50]
        assert words in answer.json()["detail"]
    assert client.post("/predict", json=[row | {"age": None, "other": 1}]).status_code == 200
    assert client.get("/predict").status_code == 405


ODD = [
    None,
    True,
    -1,
    0.5,
    1e308,
    -1e-308,
    "",
    "x",
    "2020-01-01",
    "9999-12-31T23:59:59+14:00",
    "0001-01-01T00:00:00+14:00",
    [],
    {},
    [[]],
    10**30,
    float("nan"),
    "\x00",
    "\udfff",
]


@WAYS
def test_random_requests_are_answered_or_refused(way, clients):
    rng = np.random.default_rng(0)
    client, rows = clients["classifier", way], rows_of(table()[0][:20])
    seen = set()
    for _ in range(size(200, long=3000)):
        row = dict(rows[rng.integers(len(rows))])
        for name in rng.choice(list(row), rng.integers(1, 4)):
            row[str(name)] = ODD[rng.integers(len(ODD))]
        body = json.dumps([row]).encode()
        if rng.random() < 0.3:  # a damaged byte
            at = int(rng.integers(len(body)))
            body = body[:at] + bytes([rng.integers(256)]) + body[at + 1 :]
        answer = client.post("/predict", content=body)
        assert answer.status_code in (200, 400, 422), (body, answer.text)
        assert "prediction" in answer.json() or "detail" in answer.json()
        seen.add(answer.status_code)
    assert seen == {200, 400, 422}


def test_folder_needs_no_torch(models, repo, tmp_path):
    models["classifier"].export_numpy(tmp_path / "exported")
    code = (
        "import sys; sys.modules['torch'] = sys.modules['psilonnet'] = None; import serve; "
        "print(serve.model.kinds['size'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(repo / "examples"), "PSILONNET_MODEL": str(tmp_path / "exported")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "number\n"


def test_benchmark_of_the_server_has_no_errors_and_flat_memory(repo):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.serving", "--quick"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
        timeout=900,
    )
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["errors"] == 0, done.stderr
    for way in ("numpy", "onnx"):
        assert figures[f"{way}_64_per_s"] > 0
        assert figures[f"{way}_64_mb"] < 1.1 * figures[f"{way}_mb_warm"] + 5
