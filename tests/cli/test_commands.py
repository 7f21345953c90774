"""The command line as a user types it; in processes of its own where that matters."""

import gzip
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from psilonnet import Design, PSiLONRegressor, __version__
from psilonnet.cli.rows import read_training
from psilonnet.tables import LossWarning, TextStyle
from typed import process, refusal, typed
from typed import run as printed_and_said


def run(*words):
    """Return what a command printed."""
    return printed_and_said(*words)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    n = 120
    age = rng.normal(40, 10, n).round(1)
    city = rng.choice(["Oslo", "Rome", "Lima"], n)
    table = pl.DataFrame(
        {
            "id": [f"c{k}" for k in range(n)],
            "age": [None if k % 15 == 0 else a for k, a in enumerate(age)],
            "city": city,
            "joined": [f"2024-01-{1 + k % 28:02d}" for k in range(n)],
            "bought": np.where(age + 10 * (city == "Oslo") > 42, "yes", "no"),
            "spent": 100 + 5 * age,
        }
    )
    table.write_csv(folder / "data.csv")
    dated = table.with_columns(pl.col("joined").str.to_date())
    dated.write_parquet(folder / "data.parquet")
    (folder / "junk.csv").write_bytes(b"\x00\xff\x00\x00,,\n\n1,2,3\n")
    (folder / "one.csv").write_text("y\n1\n2\n")
    (folder / "space.csv").write_text("x, y \n1,2\n")
    (folder / "long.csv").write_text('x,y\n"1\n",2\n\n1,2,3\n')
    (folder / "old.csv").write_bytes(b"x,y\r1,2\r")
    fit = ("fit", folder / "data.csv", "--drop", "id")
    words = ("--target", "bought", "--drop", "spent", "--out", folder / "class.psilon")
    run(*fit, *words, "--max-steps", 100)  # so that both classes are predicted
    words = ("--target", "spent", "--drop", "bought", "--out", folder / "number.psilon")
    run(*fit, *words, "--max-steps", 5)
    return folder


def test_predictions_are_written_and_piped(folder):
    done = process("predict", folder / "class.psilon", folder / "data.csv")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 121
    assert set(lines[1:]) == {"yes", "no"}
    run("predict", folder / "number.psilon", folder / "data.parquet", "--out", folder / "p.parquet")
    assert pl.read_parquet(folder / "p.parquet")["prediction"].is_finite().all()
    shares = run("predict", folder / "class.psilon", folder / "data.csv", "--proba")
    assert shares.splitlines()[0] == "probability of no,probability of yes"


def test_columns_are_carried_over_as_they_are_written(folder):
    coded = pl.read_csv(folder / "data.csv").with_columns(
        pl.Series("id", [f"{k:05d}" for k in range(120)])
    )
    coded.write_csv(folder / "coded.csv")
    kept = ("--keep", "id", "--keep", "city")
    lines = run("predict", folder / "class.psilon", folder / "coded.csv", *kept).splitlines()
    assert lines[0] == "id,city,prediction"
    assert lines[1].startswith("00000,")
    assert len(lines) == 121
    said = refusal("predict", folder / "class.psilon", folder / "coded.csv", "--keep", "no")
    assert "has no column 'no'" in said
    twice = coded.rename({"id": "prediction"})
    twice.write_csv(folder / "twice.csv")
    words = ("predict", folder / "class.psilon", folder / "twice.csv", "--keep", "prediction")
    assert "must not be called as results are" in refusal(*words)


def test_what_is_named_twice_is_kept_once_or_refused(folder):
    number, data = folder / "number.psilon", folder / "data.csv"
    kept = run("predict", number, data, "--keep", "id", "--keep", "id").splitlines()
    assert kept[0] == "id,prediction"
    words = ("certify", number, data, "--delta", "age=1", "--delta", "age=9")
    assert "Each column must have one --delta. Column 'age' has two" in refusal(*words)
    fit = ("fit", data, "--out", folder / "no.psilon", "--target", "spent")
    words = (*fit, "--monotone", "age=+1", "--monotone", "age=-1")
    assert "Each column must have one --monotone. Column 'age' has two" in refusal(*words)
    assert "A column to drop must not be the target" in refusal(*fit, "--drop", "spent")
    words = ("fit-many", *fit[1:], "--by", "city", "--drop", "city")
    assert "or the column of the groups. Got 'city' as both" in refusal(*words)
    assert not (folder / "no.psilon").exists()


def test_predicting_needs_neither_torch_nor_scikit_learn(folder):
    words = ["psilonnet", "predict", str(folder / "class.psilon"), str(folder / "data.csv")]
    code = f"""if True:
        import atexit, sys
        from psilonnet.cli import main
        sys.argv = {words!r}
        loaded = lambda: [m for m in ("torch", "sklearn", "scipy", "pandas") if m in sys.modules]
        atexit.register(lambda: print(loaded()))
        main()"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_warnings_are_one_line_without_paths(folder):
    far = pl.read_csv(folder / "data.csv").with_columns(pl.col("age") * 1000)
    far.write_csv(folder / "far.csv")
    done = process("predict", folder / "number.psilon", folder / "far.csv")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Warning: Some rows lie farther outside")


def test_version_is_told():
    assert run("--version") == f"psilonnet {__version__}\n"


def test_version_is_told_without_the_extra():
    code = """if True:
        import sys
        sys.modules.update(typer=None, polars=None)
        from psilonnet.cli import main
        sys.argv = ["psilonnet", "--version"]
        main()"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"psilonnet {__version__}\n"


def test_empty_tables_are_refused(folder):
    (folder / "empty.csv").write_text("id,age,city,joined\n")
    assert "has no rows" in refusal("predict", folder / "class.psilon", folder / "empty.csv")


def test_several_targets_have_a_column_each(folder):
    table = pl.read_parquet(folder / "data.parquet").select("age", "city")
    y = np.random.default_rng(0).normal(size=(len(table), 2))
    model = PSiLONRegressor(
        max_steps=2, width=4, reg_strength=1e-3, designs=[Design()], cv=2, verbose=False
    )
    model.fit(table, y).save(folder / "two.psilon")
    lines = run("predict", folder / "two.psilon", folder / "data.csv").splitlines()
    assert lines[0] == "prediction 0,prediction 1"
    done = run("certify", folder / "two.psilon", folder / "data.csv", "--delta", "age=1")
    assert done.startswith("prediction 0,prediction 1,low 0,low 1,high 0,high 1\n")


def test_certificates_are_written(folder):
    done = run("certify", folder / "class.psilon", folder / "data.csv", "--method", "local")
    assert done.splitlines()[0] == "prediction,certified_radius"
    stays = run("certify", folder / "class.psilon", folder / "data.csv", "--delta", "city=any")
    assert {line.split(",")[1] for line in stays.splitlines()[1:]} <= {"true", "false"}
    out = folder / "range.csv"
    moves = ("--delta", "age=2", "--delta", "joined=3")
    run("certify", folder / "number.psilon", folder / "data.csv", *moves, "--out", out)
    table = pl.read_csv(out)
    assert (table["low"] < table["prediction"]).all()
    assert (table["prediction"] < table["high"]).all()


def test_exports_are_written(folder):
    done = run("export", folder / "class.psilon", "--to", "numpy", "--out", folder / "exported")
    assert "from predictor import Predictor" in done
    assert {f.name for f in (folder / "exported").iterdir()} == {
        "manifest.json",
        "predictor.py",
        "weights.npz",
    }
    run("export", folder / "number.psilon", "--to", "onnx", "--out", folder / "number.onnx")
    assert (folder / "number.onnx").stat().st_size > 1000


def test_report_is_written(folder):
    out = folder / "card.html"
    done = run("report", folder / "class.psilon", "--out", out)
    assert done == f"Written to {out}.\n"
    alone = out.read_text(encoding="utf-8")
    assert "<h1>class</h1>" in alone
    rows = ("--data", folder / "data.parquet", "--target", "spent", "--out", out)
    run("report", folder / "number.psilon", *rows)
    assert "120 rows given to this report" in out.read_text(encoding="utf-8")
    card = folder / "card.md"
    run("report", folder / "number.psilon", *rows, "--format", "markdown", "--out", card)
    assert card.read_text(encoding="utf-8").startswith("---\n")


def test_help_teaches_and_loads_no_torch():
    assert "come with a proof" in run("--help")
    code = "import sys, psilonnet.cli.commands; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    for command in ("fit", "predict", "certify", "export", "report"):
        assert f"Example: psilonnet {command}" in " ".join(run(command, "--help").split())


MISTAKES = {
    "no file": (("fit", "no.csv", "--target", "y", "--out", "m"), "There is no file 'no.csv'"),
    "no column": (
        ("fit", "{}/data.csv", "--target", "Bought", "--out", "m"),
        "has no column 'Bought'. It has ['id', 'age'",
    ),
    "typo": (
        ("fit", "{}/data.csv", "--target", "Bougth", "--out", "m"), "Did you mean 'bought'?",
    ),
    "a folder of data": (("fit", "{}", "--target", "y", "--out", "m"), "is a folder: name a file"),
    "dates": (
        ("fit", "{}/data.parquet", "--target", "joined", "--out", "m"),
        "'joined' holds dates or times: turn them into numbers, or add --words joined",
    ),
    "words for a regression": (
        ("fit", "{}/data.csv", "--target", "city", "--task", "regression", "--out", "m"),
        "'city' holds words, such as",
    ),
    "fractions for classes": (
        ("fit", "{}/data.csv", "--target", "spent", "--task", "classification", "--out", "m"),
        "leave out --task classification, or add --words spent",
    ),
    "nothing to predict from": (
        ("fit", "{}/one.csv", "--target", "y", "--out", "m"),
        "A column beside 'y' is needed",
    ),
    "a space in a name": (
        ("fit", "{}/space.csv", "--target", "y", "--out", "m"), "Did you mean ' y '?",
    ),
    "a long line": (
        ("fit", "{}/long.csv", "--target", "y", "--out", "m"),
        "line 5 has 3 cells, and there are 2 names",
    ),
    "old lines": (
        ("fit", "{}/old.csv", "--target", "y", "--out", "m"), "end with a carriage return alone",
    ),
    "a model called a table": (
        ("fit", "{}/data.csv", "--target", "bought", "--out", "m.csv"), "such as 'm.psilon'",
    ),
    "a page of another kind": (
        ("report", "{}/class.psilon", "--out", "card.pdf"), "must end in .html or .htm. Got",
    ),
    "junk": (("fit", "{}/junk.csv", "--target", "y", "--out", "m"), "Error: "),
    "not a model": (("predict", "{}/data.csv", "{}/data.csv"), "is not a model file"),
    "model missing": (("predict", "{}/no.psilon", "{}/data.csv"), "no model file at"),
    "wrong delta": (
        ("certify", "{}/class.psilon", "{}/data.csv", "--delta", "age"), "must be column=amount",
    ),
    "unknown delta": (
        ("certify", "{}/class.psilon", "{}/data.csv", "--delta", "Age=1"), "must be columns",
    ),
    "regressor without delta": (
        ("certify", "{}/number.psilon", "{}/data.csv"), "needs at least one",
    ),
    "probabilities of numbers": (
        ("predict", "{}/number.psilon", "{}/data.csv", "--proba"), "Only a classifier",
    ),
    "target without data": (
        ("report", "{}/class.psilon", "--target", "bought", "--out", "m"), "needs --data",
    ),
    "no such target": (
        ("report", "{}/class.psilon", "--data", "{}/data.csv", "--target", "b", "--out", "m"),
        "has no column 'b'",
    ),
    "words for numbers": (
        ("report", "{}/number.psilon", "--data", "{}/data.csv", "--target", "city", "--out", "m"),
        "target of a regressor must be numbers",
    ),
    "numbers for words": (
        ("report", "{}/class.psilon", "--data", "{}/data.csv", "--target", "spent", "--out", "m"),
        "Error: ",
    ),
    "no folder for a model": (
        ("fit", "{}/data.csv", "--target", "bought", "--out", "{}/no/model"), "There is no folder",
    ),
    "no folder": (("report", "{}/class.psilon", "--out", "{}/no/card.html"), "There is no folder"),
    "a folder": (("report", "{}/class.psilon", "--out", "{}"), "is a folder: name a file"),
    "a folder for a model": (
        ("fit", "{}/data.csv", "--target", "bought", "--out", "{}"), "is a folder: name a file",
    ),
    "a folder for onnx": (
        ("export", "{}/class.psilon", "--to", "onnx", "--out", "{}"), "is a folder: name a file",
    ),
    "a folder for a table": (
        ("predict", "{}/class.psilon", "{}/data.csv", "--out", "{}"), "is a folder: name a file",
    ),
    "a file for a folder": (
        ("export", "{}/class.psilon", "--to", "numpy", "--out", "{}/data.csv"),
        "data.csv' is a file: name a folder",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_end_with_one_sentence(name, folder):
    words, said = MISTAKES[name]
    assert said in refusal(*(word.format(folder) for word in words))


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "data.csv", "--target", "bought", "--out", "data.csv"),
        ("predict", "class.psilon", "data.csv", "--out", "../{}/data.csv"),
        ("predict", "class.psilon", "data.csv", "--out", "class.psilon"),
        ("certify", "class.psilon", "data.csv", "--out", "data.csv"),
        ("export", "class.psilon", "--to", "onnx", "--out", "class.psilon"),
        ("report", "class.psilon", "--data", "data.csv", "--out", "data.csv"),
    ],
)
def test_nothing_is_written_over_what_is_read(words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = [(folder / name).read_bytes() for name in ("data.csv", "class.psilon")]
    said = refusal(*(word.format(folder.name) for word in words))
    assert "must not take the place of a file that is read" in said
    assert [(folder / name).read_bytes() for name in ("data.csv", "class.psilon")] == before


def test_a_seed_below_zero_is_refused(folder):
    fit = ("fit", folder / "data.csv", "--target", "spent", "--out", "m")
    done = typed(*fit, "--seed", -1)
    assert done.returncode == 2
    assert "Invalid value for '--seed'" in done.stderr


def test_mistake_in_a_process_has_exit_code_1(folder):
    done = process("predict", folder / "no.psilon", folder / "data.csv")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_files_are_read_as_the_model_was_taught(tmp_path):
    fit, new = tmp_path / "fit.csv", tmp_path / "new.csv"
    rows = [f"{k};{'123A'[k % 4]};{10**25 + k};{k}" for k in range(40)]
    fit.write_text("\n".join(["a;grade;id;price", *rows]))  # semicolons, numbers of 26 digits
    model = tmp_path / "m.psilon"
    run("fit", fit, "--target", "price", "--task", "regression", "--max-steps", 5, "--out", model)
    new.write_text("a\tid\tgrade\n0.5\t7\t1\n0.1\t8\t2\n")  # all levels look like numbers
    assert len(run("predict", model, new).splitlines()) == 3
    packed = tmp_path / "new.csv.gz"
    packed.write_bytes(gzip.compress(new.read_bytes()))
    assert run("predict", model, packed) == run("predict", model, new)


def test_decimal_commas_are_numbers_where_commas_do_not_separate(tmp_path):
    fit, new = tmp_path / "fit.csv", tmp_path / "new.csv"
    rows = [f"{k},5;{k};{k},1,2;{'AB'[k % 2]},1;-{k},25" for k in range(40)]
    fit.write_text("\n".join(["half;whole;twice;word;price", *rows, ";;;;1,0"]))
    table = read_training(fit, TextStyle(), target="price")
    words = [name for name, dtype in table.schema.items() if dtype == pl.String]
    assert words == ["twice", "word"]
    assert table["half"].to_list() == [k + 0.5 for k in range(40)] + [None]
    model = tmp_path / "m.psilon"
    said = run("fit", fit, "--target", "price", "--drop", "twice", "--max-steps", 5, "--out", model)
    assert "(regression;" in said
    new.write_text("half;whole;word\n1,5;2;3,1\n")  # a level that looks like a number
    dotted = tmp_path / "dotted.csv"
    dotted.write_text('half,whole,word\n1.5,2,"3,1"\n')
    with pytest.warns(LossWarning, match=r"'word' \(such as '3,1'\)"):
        assert run("predict", model, new) == run("predict", model, dotted)


@pytest.mark.parametrize("seconds", [0.7, 8])  # modules are being imported; a network trained
def test_interrupt_writes_nothing(folder, seconds):
    out = folder / "never.psilon"
    command = [sys.executable, "-m", "psilonnet", "fit", str(folder / "data.csv")]
    command += ["--target", "spent", "--out", str(out), "--max-steps", "1000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    # As a shell counts: if an import saw the signal, Python ends itself by it in the end.
    ended = process.returncode
    assert (128 - ended if ended < 0 else ended) == 130
    assert "Stopped. Nothing half-done was written." in said
    assert "Traceback" not in said
    assert not out.exists()


def test_quantiles_and_counts_are_fitted(folder, tmp_path):
    fit = ("fit", folder / "data.csv", "--drop", "id", "--drop", "bought", "--target", "spent")
    settings = ("--max-steps", 5, "--loss")
    several = ("--quantile", 0.9, "--quantile", 0.1)
    run(*fit, *settings, "quantile", *several, "--out", tmp_path / "quantiles.psilon")
    out = tmp_path / "out.csv"
    run(
        "certify",
        tmp_path / "quantiles.psilon",
        folder / "data.csv",
        "--delta",
        "age=1",
        "--out",
        out,
    )
    found = pl.read_csv(out)
    assert found.columns == [f"{w} {q}" for w in ("quantile", "low", "high") for q in (0.1, 0.9)]
    assert (found["low 0.9"] <= found["quantile 0.9"]).all()
    run(*fit, *settings, "poisson", "--out", tmp_path / "counts.psilon")
    run("predict", tmp_path / "counts.psilon", folder / "data.csv", "--out", out)
    assert (pl.read_csv(out)["prediction"] > 0).all()
    words = ("fit", folder / "data.csv", "--target", "bought", "--out", tmp_path / "none.psilon")
    assert "--task regression, or leave them out" in refusal(*words, "--loss", "poisson")


def test_directions_are_given_by_column(folder, tmp_path):
    fit = ("fit", folder / "data.csv", "--drop", "id", "--drop", "bought", "--target", "spent")
    fit += ("--out", tmp_path / "model.psilon", "--max-steps", 5)
    said = run(*fit, "--monotone", "age=+1", "--monotone", "joined=-1")
    assert "the prediction never falls when one of these rises: age." in said
    assert "the prediction never rises when one of these rises: joined." in said
    assert "COLUMN=+1" in refusal(*fit, "--monotone", "age")
    assert "Column 'city' holds words" in refusal(*fit, "--monotone", "city=1")
