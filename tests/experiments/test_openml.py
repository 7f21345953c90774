"""The OpenML client against recorded answers, served by a real server on this machine.

The answers about data sets are OpenML's own, as scikit-learn ships them for its tests; the answer
about a task has the form of OpenML's documentation.
"""

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from experiments import openml
from experiments.data import ALL, load_table

RECORDED = Path(sklearn.datasets.__file__).parent / "tests" / "data" / "openml"


def task_answer(task, data_id, target):
    source = {"data_set_id": str(data_id), "target_feature": target}
    inputs = [{"name": "source_data", "data_set": source}, {"name": "cost_matrix"}]
    return json.dumps({"task": {"task_id": str(task), "input": inputs}}).encode()


ANSWERS = {
    "/api/v1/json/task/361072": task_answer(361072, 561, "class"),
    "/api/v1/json/task/361286": task_answer(361286, 1119, "class"),
    **{
        path.format(k): f"id_{k}/{file}".format(k)
        for k in (561, 1119)
        for path, file in (
            ("/api/v1/json/data/{}", "api-v1-jd-{}.json.gz"),
            ("/api/v1/json/data/features/{}", "api-v1-jdf-{}.json.gz"),
            ("/api/v1/json/data/qualities/{}", "api-v1-jdq-{}.json.gz"),
        )
    },
    "/data/v1/download/52739": "id_561/data-v1-dl-52739.arff.gz",
    "/data/v1/download/54002": "id_1119/data-v1-dl-54002.arff.gz",
}


class Recorded(BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.rstrip("/")
        known = next((a for p, a in ANSWERS.items() if path == p or path.startswith(f"{p}/")), None)
        self.send_response(200 if known else 404)
        self.end_headers()
        if isinstance(known, str):
            known = gzip.decompress((RECORDED / known).read_bytes())
        self.wfile.write(known or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def recorded(monkeypatch, tmp_path):
    """Send every request for OpenML to a server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorded)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def redirected(request, timeout=30):
        url = urlsplit(request.full_url if isinstance(request, Request) else request)
        return urlopen(f"http://127.0.0.1:{server.server_port}{url.path}", timeout=timeout)

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", redirected)
    monkeypatch.setattr(openml, "urlopen", redirected)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_regression_table_comes_with_its_target(recorded):
    table = load_table("cpu_act", "openml")
    assert table.task == "regression"
    assert table.x.shape == (209, 7)
    assert "class" not in table.x
    assert table.y.dtype == float
    assert table.y.max() == 1238
    assert not (np.diff(table.y) > 0).all()


def test_classification_table_has_categories_and_two_classes(recorded):
    table = load_table("compas_two_years", "openml")
    assert table.task == "classification"
    assert set(table.y) == {0.0, 1.0}
    kinds = [isinstance(table.x[name].dtype, pd.CategoricalDtype) for name in table.x]
    assert any(kinds)
    assert not all(kinds)


def test_tables_of_openml_are_those_of_the_folder(data_dir):
    listed = json.loads((data_dir / "datasets.json").read_text())
    names = {entry["name"]: entry for entry in listed if not entry["extra"]}
    assert set(names) == set(openml.TASKS) == set(ALL)
    for name, entry in names.items():
        assert openml.table_version(name) == ("mixed" if entry["categorical"] else "numerical")
        suite = openml.TASKS[name][0]
        assert (entry["task"] == "regression") == (suite in openml.REGRESSION)


def test_unknown_table_is_refused():
    with pytest.raises(ValueError, match=r"must be one of .* Got 'nothing' instead"):
        load_table("nothing", "openml")
