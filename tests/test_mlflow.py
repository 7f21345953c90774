"""Models in MLflow, by MLflow itself: logged, loaded and served. Only in .ci/long serving."""

import json
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest

from deploy.messy_table import QUICK, messy
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.mlflow import log_model

mlflow = pytest.importorskip("mlflow", reason="MLflow is not there: .ci/long serving installs it")
pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    """A store of these tests alone: files in a folder."""
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_TRACKING_URI", (folder / "mlruns").as_uri())
        mlflow.set_tracking_uri((folder / "mlruns").as_uri())
        mlflow.set_experiment("tests")
        yield folder


def wide_table():
    """All kinds of columns, some with missing cells, and columns of whole numbers."""
    X, y = messy()
    return X.assign(
        rooms=np.arange(len(X)) % 7,
        waited=pd.to_timedelta(np.arange(len(X)) % 11, unit="h"),
        is_new=pd.Series([True, False, None] * (len(X) // 3), dtype=object),
        store=pd.Categorical(np.arange(len(X)) % 3),
    ), y


@pytest.fixture(autouse=True)
def no_run_is_left():
    yield
    mlflow.end_run()


def sent(X):  # noqa: N803
    """The table as MLflow takes it: whole numbers as floats, durations in days."""
    days = X.waited / pd.Timedelta(days=1)
    return X.assign(waited=days, rooms=X.rooms.astype(float), store=X.store.astype(str))


@pytest.fixture(scope="module")
def classifier():
    X, y = wide_table()
    labels = np.array(["low", "high"])[(y > np.median(y)).astype(int)]
    return PSiLONClassifier(**QUICK).fit(X, labels), X, labels


def test_logged_model_predicts_the_same_without_a_pickle(classifier, store):
    model, X, labels = classifier
    with mlflow.start_run() as run:
        info = log_model(model, "loans", X=X, y=labels)
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    found = loaded.predict(sent(X))
    assert (found["prediction"] == model.predict(X)).all()
    shares = found[[f"probability of {label}" for label in model.classes_]]
    np.testing.assert_array_equal(shares, model.predict_proba(X))
    files = [path for path in store.rglob("*") if path.is_file()]
    assert not [p for p in files if p.suffix in (".pkl", ".pickle", ".joblib", ".cloudpickle")]
    assert len([p for p in files if p.name == "model.psilon"]) == 1
    cards = mlflow.artifacts.list_artifacts(run_id=run.info.run_id)
    assert "card.html" in [card.path for card in cards]
    assert "120 rows given to this report" in next(
        path.read_text() for path in files if path.name == "card.html"
    )


def test_signature_and_example_are_those_of_the_columns(classifier):
    model, X, _ = classifier
    info = log_model(model, "loans")
    types = {spec.name: spec.type.name for spec in info.signature.inputs.inputs}
    assert list(types) == list(X.columns)
    assert types["size"] == types["rooms"] == types["waited"] == "double"
    assert types["when"] == "datetime"
    assert types["flag"] == "boolean"
    assert types["town"] == types["store"] == types["is_new"] == "string"
    out = [(spec.name, spec.type.name) for spec in info.signature.outputs.inputs]
    assert out == [
        ("prediction", "string"),
        ("probability of high", "double"),
        ("probability of low", "double"),
    ]
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    assert len(loaded.predict(loaded.input_example)) == 1


def test_several_targets_are_several_columns():
    X, y = messy()
    model = PSiLONRegressor(**QUICK).fit(X, np.stack([y, -y], axis=1))
    loaded = mlflow.pyfunc.load_model(log_model(model, "two").model_uri)
    found = loaded.predict(X)
    assert list(found) == ["prediction 0", "prediction 1"]
    np.testing.assert_array_equal(found, model.predict(X))


@contextmanager
def served(uri, log):
    """``mlflow models serve`` in this environment, on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["models", "serve", "-m", uri, "--env-manager", "local"]
    words += ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    with log.open("w") as out:
        server = subprocess.Popen([sys.executable, "-m", "mlflow", *words], stdout=out, stderr=out)
        try:
            for _ in range(600):
                assert server.poll() is None, log.read_text()
                try:
                    urlopen(f"http://127.0.0.1:{port}/ping").close()
                    break
                except (URLError, ConnectionError):
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/invocations"
        finally:
            server.terminate()
            server.wait(60)


def ask(url, body):
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(request) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def test_server_of_mlflow_answers_and_names_bad_columns(classifier, tmp_path):
    model, X, _ = classifier
    uri = log_model(model, "loans").model_uri
    table = sent(X)
    rows = json.loads(table.to_json(orient="split", date_format="iso", index=False))
    with served(uri, tmp_path / "server.log") as url:
        status, answer = ask(url, {"dataframe_split": rows})
        assert status == 200
        found = pd.DataFrame(answer["predictions"])
        assert (found["prediction"] == model.predict(X)).all()
        np.testing.assert_allclose(
            found[[f"probability of {c}" for c in model.classes_]], model.predict_proba(X), 1e-6
        )
        row = table.iloc[:1].to_dict(orient="records")[0] | {"when": "2020-02-03"}
        assert ask(url, {"dataframe_records": [row]})[0] == 200
        without = {name: cell for name, cell in row.items() if name != "town"}
        for bad, name in ((without, "town"), (row | {"size": "many"}, "size")):
            status, answer = ask(url, {"dataframe_records": [bad]})
            assert status == 400
            assert name in answer["message"]


def test_skops_names_save(classifier):
    skops = pytest.importorskip("skops.io")
    with pytest.raises(TypeError, match=r"Use model\.save\(path\)"):
        skops.dumps(classifier[0])


def test_the_hub_reads_the_card(classifier, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    model, X, labels = classifier
    model.report(tmp_path / "README.md", X, labels, title="Loans", format="markdown")
    card = hub.ModelCard.load(tmp_path / "README.md")
    assert card.data.library_name == "psilonnet"
    assert card.data.pipeline_tag == "tabular-classification"
    found = {(r.dataset_name, r.metric_type): r.metric_value for r in card.data.eval_results}
    assert found["given rows", "accuracy"] == pytest.approx(model.score(X, labels))
    assert card.data.license is None


def test_blocks_of_the_page_run(repo, capsys):
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", (repo / "docs/mlflow.md").read_text(), re.S):
        exec(compile(block, "mlflow.md", "exec"), namespace)
    assert "probability of yes" in capsys.readouterr().out
