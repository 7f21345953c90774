"""A model file predicted with NumPy: the same numbers, words and refusals as the model's."""

import subprocess
import sys

import numpy as np
import pytest

from deploy.messy_table import QUICK, messy
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor, load
from psilonnet.deploy import FilePredictor, ModelFileError, read_model_file, write_model_file
from psilonnet.tables import OutOfRangeWarning

# Every kind of layer and of map: pieces, CReLU blocks, logarithmic tails, clipped columns.
DESIGNS = [
    Design(columns="clipped", pieces=4),
    Design(columns="log_tails"),
    Design(columns="identity", architecture="resnet"),
]

LOSSES = {
    "quantiles": {"loss": "quantile", "quantile": [0.1, 0.5, 0.9]},
    "counts": {"loss": "poisson"},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    table, y = messy()
    given = {**QUICK, "designs": DESIGNS}
    three = np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    targets = {
        "number": (PSiLONRegressor, y),
        "numbers": (PSiLONRegressor, np.stack([y, -y], axis=1)),
        "quantiles": (PSiLONRegressor, y),
        "counts": (PSiLONRegressor, np.round(np.exp(y / 4))),
        "two": (PSiLONClassifier, y > np.median(y)),
        "three": (PSiLONClassifier, three),
    }
    for name, (kind, target) in targets.items():
        own = {**given, **LOSSES.get(name, {})}
        kind(**own).fit(table, target).save(folder / name)
    return folder


@pytest.mark.parametrize("name", ["number", "numbers", "quantiles", "counts", "two", "three"])
def test_predictions_are_those_of_the_model(name, models):
    table, _ = messy(seed=1)
    model, predictor = load(models / name), FilePredictor(models / name)
    ours, theirs = model.predict(table), predictor.predict(table)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if name in ("two", "three"):
        assert (ours == theirs).all()
        shares = predictor.predict_proba(table)
        np.testing.assert_allclose(shares, model.predict_proba(table), rtol=1e-11)
    else:
        np.testing.assert_allclose(theirs, ours, rtol=1e-11, atol=1e-11)
        with pytest.raises(ValueError, match="Only a classifier has probabilities"):
            predictor.predict_proba(table)


def test_rows_far_outside_are_told_in_the_words_of_the_model(models):
    table, _ = messy(seed=1)
    far = table.assign(size=table["size"] * 1000)
    with pytest.warns(OutOfRangeWarning) as ours:
        load(models / "number").predict(far)
    with pytest.warns(OutOfRangeWarning) as theirs:
        FilePredictor(models / "number").predict(far)
    assert [str(w.message) for w in theirs] == [str(w.message) for w in ours]


def test_columns_are_found_by_their_names(models):
    table, _ = messy(seed=1)
    predictor = FilePredictor(models / "number")
    moved = table[table.columns[::-1]].assign(other=1.0)
    assert (predictor.predict(moved) == predictor.predict(table)).all()
    with pytest.raises(ValueError, match=r"Missing: \['size'\]"):
        predictor.predict(table.drop(columns="size"))
    with pytest.raises(ValueError, match="unique"):
        predictor.predict(table.rename(columns={table.columns[-1]: "size"}))


def test_names_of_columns_may_be_numbers(tmp_path):
    table, y = messy()
    numbers = table[["size", "age"]].set_axis([0, 1], axis=1)
    model = PSiLONRegressor(**QUICK).fit(numbers, y)
    model.save(tmp_path / "model")
    predicted = FilePredictor(tmp_path / "model").predict(numbers[[1, 0]])
    np.testing.assert_allclose(predicted, model.predict(numbers), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda table: table[:0], "at least one row"),
        (lambda table: table.to_numpy()[:0], "at least one row"),
        (lambda table: table.to_numpy()[:, :2], "without names"),
        (lambda table: table.to_numpy()[0], "must be a pandas, polars or Arrow table"),
        (lambda table: table["size"], "must be a pandas, polars or Arrow table"),
        (lambda table: table.to_numpy().tolist(), "must be a pandas, polars or Arrow table"),
    ],
)
def test_tables_of_another_shape_are_refused(wrong, words, models):
    table, _ = messy(seed=1)
    with pytest.raises((TypeError, ValueError), match=words):
        FilePredictor(models / "number").predict(wrong(table))


LIES = {
    "kind": "PSiLONRanker",
    "parts": [],
    "encoder": {"names": [], "kinds": [], "codes": []},
    "target": {"classes": [0, 1], "dtype": "<U99999999", "temperature": 1.0},
}


@pytest.mark.parametrize("key", LIES)
def test_wrong_files_are_refused(key, models, tmp_path):
    manifest, tensors = read_model_file(models / "two")
    write_model_file(tmp_path / "lie", {**manifest, key: LIES[key]}, tensors)
    with pytest.raises(ModelFileError):
        FilePredictor(tmp_path / "lie")
    with pytest.raises(FileNotFoundError, match="no model file"):
        FilePredictor(tmp_path / "none")


def test_neither_torch_nor_scikit_learn_is_imported(models):
    code = f"""if True:
        import sys
        from psilonnet.deploy import FilePredictor
        FilePredictor({str(models / "number")!r})
        print([name for name in ("torch", "sklearn", "scipy", "pandas") if name in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
