"""``psilonnet predict-files`` as a user types it."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psilonnet import Design, PSiLONRegressor
from typed import process, typed


def run(*words):
    return typed("predict-files", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict_files")
    x = np.random.default_rng(0).normal(size=(200, 2))
    model = PSiLONRegressor(
        width=16, max_steps=20, reg_strength=1e-3, designs=[Design()], cv=2, verbose=False
    )
    model.fit(x, x[:, 0]).save(folder / "m.psilon")
    (folder / "in").mkdir()
    for k in range(2):
        table = pa.table({"id": np.arange(200), "x0": x[:, 0], "x1": x[:, 1]})
        pq.write_table(table, folder / "in" / f"{k}.parquet")
    return folder


def test_rows_are_predicted_and_a_second_run_goes_on(folder):
    words = (folder / "m.psilon", folder / "in" / "*.parquet", "--out", folder / "out")
    done = process("predict-files", *words, "--keep", "id")
    assert done.returncode == 0, done.stderr
    assert "400 rows in 2 files" in done.stdout
    assert "400 of them are new" in done.stdout
    assert done.stderr == ""
    assert pq.read_table(folder / "out").column_names == ["id", "prediction"]
    (folder / "out" / "0-00000.parquet").unlink()
    assert "; 200 of them are new" in run(*words, "--keep", "id").stdout
    done = run(*words)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "made with other columns to keep. Delete it" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["m.psilon", "none/*.parquet"], "There is no Parquet file at"),
        (["none.psilon", "in"], "There is no model file at"),
        (["m.psilon", "in", "--keep", "name"], "column 'name' is missing"),
    ],
)
def test_mistake_is_one_sentence(folder, words, said):
    files = [folder / word if k < 2 else word for k, word in enumerate(words)]
    done = run(*files, "--out", folder / "never")
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "never").exists()


def test_bad_file_is_named_and_the_good_are_written(folder):
    (folder / "mixed").mkdir()
    (folder / "mixed" / "bad.parquet").write_bytes(b"not at all")
    (folder / "mixed" / "good.parquet").write_bytes((folder / "in" / "0.parquet").read_bytes())
    done = run(folder / "m.psilon", folder / "mixed", "--out", folder / "some")
    assert done.returncode == 1
    assert "bad.parquet': not a readable Parquet file" in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "some" / "good-00000.parquet").exists()


def test_text_is_read_with_a_line_or_asked_about(folder):
    x = pq.read_table(folder / "in" / "0.parquet").to_pandas()
    words = pa.table({"x0": [f"${a:.2f}" for a in x.x0], "x1": [f"{a:.3f}" for a in x.x1]})
    pq.write_table(words, folder / "text.parquet")
    done = run(folder / "m.psilon", folder / "text.parquet", "--out", folder / "asked")
    assert done.returncode == 1
    assert "In column 'x1'" in done.stderr
    assert "(--decimal on the command line)" in done.stderr
    asked = ("--decimal", ".", "--day-first")
    done = run(folder / "m.psilon", folder / "text.parquet", "--out", folder / "text", *asked)
    assert done.returncode == 0, done.stderr
    assert "Read as numbers: 'x0', 'x1'." in done.stderr
    rounded = pa.table({"x0": x.x0.round(2), "x1": x.x1.round(3)})
    pq.write_table(rounded, folder / "rounded.parquet")
    run(folder / "m.psilon", folder / "rounded.parquet", "--out", folder / "rounded")
    found, wanted = (pq.read_table(folder / name)["prediction"] for name in ("text", "rounded"))
    np.testing.assert_allclose(found, wanted)


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['psilonnet', 'predict-files', '--help']\n"
        "from psilonnet.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([m for m in ('torch', 'pyarrow', 'ray') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
