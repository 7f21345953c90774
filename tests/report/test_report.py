"""The page about a model: complete, self-contained, escaped, and the same every time."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score

import psilonnet
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.nn import KnotLinear
from psilonnet.report.confusion import MOST_CLASSES
from psilonnet.report.facts import network_of
from psilonnet.report.html import Html, tag

SMALL = {"width": 16, "depth": 2, "max_steps": 30, "random_state": 0}
FIXED = {**SMALL, "reg_strength": 1e-3, "knots": 0}
EVIL = "<script>alert('$x^{')</script>\"&amp;"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Collects what a page holds, and checks that elements close in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.loads, self.open, self.words = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, name, attributes):
        self.handle_startendtag(name, attributes)
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.tags.append(name)
        for key, value in attributes:
            if key == "id":
                self.ids.append(value)
            if key in ("src", "href", "xlink:href", "srcset", "data", "action"):
                self.loads.append(value)
            assert not key.startswith("on")

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)


def page_of(model, folder, *rows, **options):
    path = folder / "card.html"
    model.report(path, *rows, **options)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.loads)
    assert not re.search(r"@import|url\((?!#)|https?://", text)
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.loads} <= set(page.ids)
    return page


def rows(n=60, columns=3):
    x = np.random.default_rng(0).normal(size=(n, columns))
    return pd.DataFrame(x, columns=[f"c{k}" for k in range(columns)]), x[:, 0]


def mixed(n=80):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "amount": rng.normal(2e5, 4e4, n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
            "empty at times": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "constant": 1.0,
        }
    )
    return frame, np.where(frame["amount"] > 2e5, "yes", "no")


@pytest.fixture(scope="module")
def classifier():
    return PSiLONClassifier(**{**SMALL, "learning_rate": 2e-2}).fit(*mixed())


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
        "method local",
        f"{np.mean(classifier.certified_radius(frame, method='local') >= 0.25):.1%}",
        "chosen: ",
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
        assert "reg_strength" in page_of(classifier, tmp_path).text  # words, not outlines
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
    "resnet": (PSiLONClassifier(**FIXED, architecture="resnet", prune=True), lambda y: y > 0),
    "ensemble": (PSiLONClassifier(**{**FIXED, "knots": 4}, n_members=3), lambda y: y > 0),
    "nothing held out": (PSiLONRegressor(**FIXED, scaling="robust"), lambda y: y),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_has_a_page(name, tmp_path):
    model, target = MODELS[name]
    frame, y = rows(120)
    y = target(y)
    model.fit(frame, y)
    page = page_of(model, tmp_path, frame[:20], y[:20])
    said = {
        "many classes": "and 4 more",
        "one target": "How far could these rows move?",
        "several targets": "several numbers: output_range() tells how far each can move",
        "pruned": "Neurons that no longer reach the output",
        "resnet": "architecture resnet",
        "ensemble": "3 networks, averaged",
        "nothing held out": "This fit held nothing out",
    }[name]
    assert said in page.text
    compared = model.path_ is not None and len(model.path_["reg_strength"]) > 1
    assert ("No strengths were compared" in page.text) == (not compared)


@pytest.mark.parametrize("knots", [0, (0, 8)])
def test_a_classifier_of_one_strength_has_a_page(knots, tmp_path):
    frame, y = rows()
    model = PSiLONClassifier(**{**SMALL, "reg_strength": 1e-4, "knots": knots}).fit(frame, y > 0)
    page = page_of(model, tmp_path, frame[:20], y[:20] > 0)  # warnings are errors
    assert ("chosen: 0.0001" in page.text) == (knots == (0, 8))


def test_numbers_of_the_network_are_those_of_the_pruned_net(tmp_path):
    frame, y = rows(60)
    model = PSiLONRegressor(**FIXED, prune=True).fit(frame, y)
    nonzero = sum(int((layer.weight != 0).sum()) for layer in model.net_.layers)
    total = sum(layer.weight.numel() for layer in model.net_.layers)
    assert f"Of {total:,} weights, {nonzero:,} are not zero" in page_of(model, tmp_path).text


def test_names_and_labels_are_escaped(tmp_path):
    frame, y = rows(60, columns=2)
    frame.columns = [EVIL, "日本語の列" * 30]
    labels = np.where(y > 0, EVIL, "</style><b>")
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    page = page_of(model, tmp_path, frame[:10], labels[:10], title=EVIL)
    assert page.text.count(EVIL) >= 4
    assert "b" not in page.tags


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


def test_many_rows_are_proven_globally(classifier, tmp_path, monkeypatch):
    frame, _ = mixed()
    monkeypatch.setattr("psilonnet.report.rows.LOCAL_WORK", 10)
    page = page_of(classifier, tmp_path, frame)
    assert "the global bound" in page.text
    assert "given to this report" not in page.text  # no targets, no score


STRONG = {**FIXED, "max_steps": 100, "learning_rate": 2e-2, "reg_strength": 1.0}


@pytest.mark.parametrize("given", ["rows and labels", "rows", "nothing"])
def test_one_class_for_all_rows_is_said_first_and_not_praised(given, tmp_path):
    frame, y = rows(200)
    labels = np.where(y + np.random.default_rng(1).normal(size=200) > 2.2, "yes", "no")
    model = PSiLONClassifier(**STRONG).fit(frame, labels)
    assert set(model.predict(frame)) == {"no"}
    parts = {"rows and labels": (frame[:90], labels[:90]), "rows": (frame[:90],), "nothing": ()}
    text = page_of(model, tmp_path, *parts[given]).text
    which = "90 given rows" if len(parts[given]) == 2 else "200 rows that the model was trained on"
    said = text.index(f"All {which} get the same class, 'no', though ")
    assert said < text.index("Remedy: other class weights (class_weight='balanced')")
    assert text.index("on predict_proba.") < text.index("proven limit of")
    assert "a small bound is no merit" in text
    assert "Rows that cannot flip" not in text
    assert ("says nothing about the model" in text) == (given != "nothing")


def test_rows_of_one_class_are_said_to_show_little(classifier, tmp_path):
    frame, labels = mixed()
    same = (labels == "no") & (classifier.predict(frame) == "no")
    page = page_of(classifier, tmp_path, frame[same], labels[same])
    assert f"All {same.sum()} given rows get the same class, 'no'. They do not show" in page.text
    assert "AUC is not defined: all rows are of one class." in page.text
    assert "Rows that cannot flip" in page.text  # the model itself tells classes apart
    assert "no merit" not in page.text


def test_one_number_for_all_rows_is_said_first(tmp_path):
    frame, y = rows(200)
    model = PSiLONRegressor(**{**STRONG, "max_steps": 400, "reg_strength": 20.0}).fit(frame, y)
    text = page_of(model, tmp_path, frame, y).text
    assert text.index("All 200 given rows get nearly the same") < text.index("proven limit of")
    assert "Worst row" not in text


def test_classes_that_are_missing_or_unknown_are_named(tmp_path):
    frame, y = rows(200)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    new = np.where(labels == "low", "other", labels)
    text = page_of(model, tmp_path, frame, new).text
    assert "each class against the rest, over the 2 of 3 that have rows here" in text
    assert "Some rows are of classes that the model does not know, so there is no log loss" in text
    assert "low no rows 0 0 0" in text
    assert re.search(r"unknown to the model 0% \d+ \d+ \d+", text)
    whole = page_of(model, tmp_path, frame, labels).text
    expected = roc_auc_score(labels, model.predict_proba(frame), multi_class="ovr")
    assert f"{expected:.4f}" in whole
    assert "over all classes" in whole


def test_the_rarest_of_many_classes_are_put_together(tmp_path):
    frame, y = rows(300)
    labels = np.digitize(y, np.linspace(-2, 2, 29))
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    text = page_of(model, tmp_path, frame, labels).text
    head = re.search(r"Truth Right ((?:\d+ )+)others", text).group(1).split()
    assert len(head) == MOST_CLASSES
    assert head[-1] == str(len(model.classes_) - MOST_CLASSES + 1)


def test_labels_that_do_not_fit_are_refused(classifier, tmp_path):
    frame, labels = mixed()
    with pytest.raises(
        ValueError, match=r"classes of the model: 'no', 'yes'.*it holds 'Yes', 'No'"
    ):
        classifier.report(tmp_path / "card", frame, np.char.capitalize(labels))
    with pytest.raises(ValueError, match=r"must not be missing.*row 0"):
        classifier.report(tmp_path / "card", frame, [None, *labels[1:]])


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


def test_text_is_escaped_unless_it_is_html():
    assert tag("p", "<b>", Html("<i>")) == "<p>&lt;b&gt;<i></p>"
    assert tag("p", title='"') == '<p title="&quot;"></p>'


def test_only_pieces_in_reach_are_counted():
    frame, y = rows(60)
    model = PSiLONRegressor(**{**FIXED, "knots": 0}).fit(frame, y)
    expected = network_of(model)
    model.net_[0] = KnotLinear.unsplit(model.net_[0], 5)
    assert network_of(model) == expected


def test_a_constant_column_with_missing_cells_is_not_called_useless(tmp_path):
    frame, y = rows(60, columns=2)
    frame["same"] = 7.0
    frame.loc[::3, "same"] = np.nan
    text = page_of(PSiLONRegressor(**FIXED).fit(frame, y), tmp_path).text
    assert "constant, some missing" in text
    assert "cannot move it at all" not in text
