"""The page about Spark on a real one (and a Java). Only in .ci/long spark."""

import os
import re
import shutil
import stat
import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: .ci/long spark installs it")
pytestmark = pytest.mark.long

WITHOUT_TORCH = """
@pandas_udf("string")
def torch_there(tables: Iterator[pd.DataFrame]) -> Iterator[pd.Series]:
    try:
        import torch
        said = "there"
    except ImportError as error:
        said = str(error)
    for batch in tables:
        yield pd.Series([said] * len(batch))

said = {row[0] for row in sales.select(torch_there(struct(*names))).distinct().collect()}
assert said == {"no torch here"}, said
found = scored.toPandas()
expected = model.predict(found[names])
np.testing.assert_allclose(found.prediction, expected, rtol=1e-9)
assert len(found) == 600 and np.ptp(expected) > 10
try:
    spark.createDataFrame(table.assign(price="much")).select(predicted(struct(*names))).collect()
except Exception as error:
    assert "Column 'price' must hold numbers, as in training. Got 'much'." in str(error)
else:
    raise AssertionError("words for numbers were taken")
print("checked")
"""
GROUPS = """
from psilonnet import PSiLONRegressor

found = spark.read.parquet("models").toPandas().set_index("store")
assert set(found.index) == {"Oslo", "Rome", "Lima"}
for store, row in found.iterrows():
    path = Path(f"{store}.psilon")
    path.write_bytes(row.model)
    again = psilonnet.load(path)
    assert again.lipschitz_bound_ == row.bound and again.held_out_score_ == row.held_out_score
    own = table[table.store == store]
    assert again.n_rows_ == len(own)
    assert again.score(own[["price", "weekday"]], own.sold) > 0.8
print("checked")
"""


@pytest.fixture(scope="module")
def blocks(repo):
    return re.findall(r"```python\n(.*?)```", (repo / "docs" / "spark.md").read_text(), re.S)


def python_without_torch(folder):
    """A Python whose torch cannot be imported, for the workers."""
    (folder / "absent" / "torch").mkdir(parents=True)
    (folder / "absent" / "torch" / "__init__.py").write_text("raise ImportError('no torch here')")
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}/absent:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


def run(code, folder, worker):
    script = folder / "page.py"
    script.write_text(code)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": worker,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
    }
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.splitlines()[-1] == "checked"


def test_rows_are_predicted_without_torch_on_the_executors(blocks, tmp_path):
    assert shutil.which("java"), "Spark needs a Java: .ci/long spark installs one"
    run("\n".join([*blocks[:2], WITHOUT_TORCH]), tmp_path, python_without_torch(tmp_path))


def test_one_model_per_group(blocks, tmp_path):
    run("\n".join([blocks[0], *blocks[2:], GROUPS]), tmp_path, sys.executable)
