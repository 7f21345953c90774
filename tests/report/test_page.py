"""The page about a model: complete, self-contained, escaped, and the same every time."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

import psilonnet
from psilonnet import Design, PSiLONClassifier, PSiLONRegressor
from report.pages import FIXED, SMALL, mixed, page_of, rows


def test_page_tells_everything_about_a_classifier(classifier, tmp_path):
    days = mixed()[0]["day"].dt.date
    frame, labels = mixed(40)
    (a, b), (c, d) = confusion_matrix(labels, classifier.predict(frame))
    top, share = ("yes", (c + d) / 40) if c + d > 20 else ("no", (a + b) / 40)
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    page = page_of(classifier, tmp_path, frame, labels, title="Loans & more")
    assert page.tags.count("svg") == 4
    for words in (
        "Loans & more",
        "A classifier with 2 classes: no, yes. It has learned from 80 rows of 5 columns.",
        f"Rows held out by the fit itself {classifier.held_out_score_:.4f}",
        f"40 rows given to this report {classifier.score(frame, labels):.4f} "
        f"{roc_auc_score(labels, classifier.decision_function(frame)):.4f} "
        f"{log_loss(labels, classifier.predict_proba(frame)):.4f}",
        f"Always the most frequent class, {top!r} {share:.4f} 0.5000 {entropy:.4f}",
        f"Truth Right no yes no {a / (a + b):.0%} {a} {b} yes {d / (c + d):.0%} {c} {d}",
        "slightly optimistic",
        "the log-odds of 'yes' move by at most",
        "Which rows could flip?",
        "method linear",
        f"{np.mean(classifier.certified_radius(frame, method='linear') >= 0.25):.1%}",
        "2 designs of networks were trained 2 times",
        "Weight Design Strength",
        "(selection 'balanced')",
        "Hidden layer 2",
        "max_steps 30 'auto'",
        "Lima, Oslo, Rome",
        f"{days.min()} to {days.max()}",
        "some missing",
        "constant, not used",
        'psilonnet.load("model.psilon")',
        f"psilonnet {psilonnet.__version__}",
    ):
        assert words in page.text, words


def test_same_model_gives_the_same_page_in_every_process(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    first, second = tmp_path / "first.html", tmp_path / "second.html"
    classifier.report(first)
    code = "import sys, psilonnet; psilonnet.load(sys.argv[1]).report(sys.argv[2])"
    done = [sys.executable, "-c", code, tmp_path / "model", second]
    subprocess.run(done, check=True, capture_output=True)
    assert first.read_bytes() == second.read_bytes()


def test_users_style_and_figures_are_left_alone(classifier, tmp_path):
    with plt.rc_context({"font.size": 40, "svg.fonttype": "path"}):
        assert "ringed: in use" in page_of(classifier, tmp_path).text  # words, not outlines
        assert plt.rcParams["font.size"] == 40
    assert plt.get_fignums() == []


MODELS = {
    "many classes": (PSiLONClassifier(**FIXED), lambda y: np.digitize(y, np.linspace(-1, 1, 11))),
    "one target": (PSiLONRegressor(**SMALL), lambda y: y),
    "several targets": (
        PSiLONRegressor(**FIXED, learning_rate=2e-2),
        lambda y: np.stack([y, -y], axis=1),
    ),
    "pruned": (PSiLONRegressor(**FIXED, prune=True), lambda y: y),
    "resnet": (
        PSiLONClassifier(**{**FIXED, "designs": [Design(architecture="resnet")]}, prune=True),
        lambda y: y > 0,
    ),
    "three folds": (PSiLONClassifier(**{**FIXED, "cv": 3}), lambda y: y > 0),
    "nothing held out": (
        PSiLONRegressor(**{**FIXED, "cv": None, "designs": [Design(columns="clipped")]}),
        lambda y: y,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_has_a_page(name, tmp_path):
    model, target = MODELS[name]
    frame, y = rows(30 if name == "nothing held out" else 120)
    y = target(y)
    model.fit(frame, y)
    page = page_of(model, tmp_path, frame[:20], y[:20])
    said = {
        "many classes": "and 4 more",
        "one target": "How far could these rows move?",
        "several targets": "several numbers: output_range() tells how far each can move",
        "pruned": "Neurons that no longer reach the output",
        "resnet": "residual CReLU blocks",
        "three folds": "3 networks, averaged",
        "nothing held out": "This fit held nothing out",
    }[name]
    assert said in page.text
    assert ("nothing could be compared" in page.text) == (model.path_ is None)


@pytest.mark.parametrize("designs", [[Design()], [Design(), Design(pieces=8)]])
def test_a_classifier_of_one_strength_has_a_page(designs, tmp_path):
    frame, y = rows()
    options = {**SMALL, "reg_strength": 1e-4, "designs": designs}
    model = PSiLONClassifier(**options).fit(frame, y > 0)
    page = page_of(model, tmp_path, frame[:20], y[:20] > 0)  # warnings are errors
    assert page.tags.count("svg") == 2 + len(designs)  # one point is no picture


@pytest.mark.parametrize("columns", [1, 200])
def test_few_and_many_columns(columns, tmp_path):
    frame, y = rows(40, columns)
    frame.columns = [f"{k} is a name that is far longer than anybody wants" * 4 for k in frame]
    page = page_of(PSiLONRegressor(**FIXED).fit(frame, y), tmp_path, frame, y)
    assert all(name in page.text for name in frame.columns)
    assert ("1 column " if columns == 1 else "200 columns") in page.text


def test_table_without_numbers_has_nothing_to_move(tmp_path):
    frame, labels = mixed()
    settings = {**FIXED, "learning_rate": 2e-2}  # so that it tells the classes apart
    model = PSiLONClassifier(**settings).fit(frame[["city"]], labels)
    page = page_of(model, tmp_path, frame[["city"]], labels)
    assert "No column can move by an amount. is_robust() with a delta of 'any'" in page.text
    assert "Rows that cannot flip" not in page.text


def test_more_rows_are_proven_by_quicker_methods(classifier, tmp_path, monkeypatch):
    frame, _ = mixed()
    monkeypatch.setattr("psilonnet.report.rows.LINEAR_WORK", 10)
    page = page_of(classifier, tmp_path, frame)
    assert "(method local). For fewer rows, linear ones would say more." in page.text
    monkeypatch.setattr("psilonnet.report.rows.LOCAL_WORK", 10)
    page = page_of(classifier, tmp_path, frame)
    assert "the global bound" in page.text
    assert "given to this report" not in page.text  # no targets, no score


def test_mistakes_are_named_and_write_nothing(classifier, tmp_path, monkeypatch):
    frame, labels = mixed()
    path = tmp_path / "card.html"
    with pytest.raises(ValueError, match="needs X"):
        classifier.report(path, y=labels)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.report(path, frame, labels[:5])
    with pytest.raises(ValueError, match="not fitted"):
        PSiLONClassifier().report(path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'psilonnet\[plot\]'"):
        classifier.report(path)
    assert not path.exists()


def test_a_constant_column_with_missing_cells_is_not_called_useless(tmp_path):
    frame, y = rows(60, columns=2)
    frame["same"] = 7.0
    frame.loc[::3, "same"] = np.nan
    text = page_of(PSiLONRegressor(**FIXED).fit(frame, y), tmp_path).text
    assert "constant, some missing" in text
    assert "cannot move it at all" not in text
