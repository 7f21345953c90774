"""The commands for many models, as a user types them."""

import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from psilonnet.scale import predict_many
from typed import process, refusal, run

SMALL = ("--width", "16", "--max-steps", "300", "--strength", "0.001")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    table = pl.DataFrame(
        {
            "store": np.repeat(["Oslo", "Rome", "Lima", "one row"], [40, 40, 39, 1]),
            "id": [f"c{k}" for k in range(120)],
            "size": x,
            "bought": np.where(x > 0, "yes", "no"),
        }
    )
    table.write_csv(folder / "data.csv")
    return folder


def words(folder, *more):
    data, out = str(folder / "data.csv"), str(folder / "models")
    return ["fit-many", data, "--by", "store", "--target", "bought", "--out", out, *more]


def test_models_are_fitted_and_failures_are_named(folder):
    done = process(*words(folder, "--drop", "id", *SMALL))
    assert done.returncode == 0
    assert "Fitted 3 models; the index is" in done.stdout
    assert done.stderr.startswith("Warning: Groups without a model: 1 of 4. ")  # and no bar
    assert "\n  'one row': ValueError: PSiLONClassifier needs at least 2" in done.stderr
    table = pl.read_csv(folder / "data.csv")
    with pytest.warns(UserWarning, match="1 of 120 rows have no prediction"):
        predictions = predict_many(table, by="store", models=folder / "models")
    assert (predictions[:119] == table["bought"].to_numpy()[:119]).mean() > 0.9


def test_help_teaches_and_loads_no_torch():
    assert "Example: psilonnet fit-many" in " ".join(run("fit-many", "--help")[0].split())
    code = "import sys, psilonnet.cli.many_commands; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--by", "shop"), "has no column 'shop'"),
        (("--max-steps", "0"), "or a whole number of at least 1"),
        (("--out", "{}/data.csv"), "Error: "),
    ],
)
def test_mistakes_end_with_one_sentence(wrong, said, folder):
    assert said in refusal(*words(folder, *SMALL, *(word.format(folder) for word in wrong)))


def test_interrupt_says_what_is_there(folder):
    out = folder / "stopped"
    given = words(folder, "--out", str(out), "--max-steps", "1000000", "--drop", "id")
    command = [sys.executable, "-m", "psilonnet", *given]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not (out / "work").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert (out / "work").exists()
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    # Python ends by the signal itself if it came in the midst of certain imports.
    assert process.returncode in (130, -signal.SIGINT), said
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    shutil.rmtree(out)
