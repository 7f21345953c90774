"""The model card: what people read is what the page says, and the Hub can read the rest."""

import re

import numpy as np
import pytest
import yaml
from markdown_it import MarkdownIt

from psilonnet import PSiLONClassifier, PSiLONRegressor
from report.pages import FIXED, SMALL, Page, mixed, page_of, rows

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
EVIL = "<script>alert('$x^{')</script>\"&amp;|`*_[a](b)\n---\nlicense: mit"


def card_of(model, folder, *rows, **options):
    """The metadata of a card, and what it shows."""
    path = folder / "README.md"
    model.report(path, *rows, format="markdown", **options)
    start, metadata, body = path.read_text(encoding="utf-8").split("---\n", 2)
    assert start == ""
    return yaml.safe_load(metadata), Page(READER.render(body))


def words_of(text):
    return re.findall(r"\w+", text)


def words_of_page(model, folder, *rows, **options):
    """The words of the HTML page without its head, its pictures and their captions."""
    page_of(model, folder, *rows, **options)
    text = (folder / "card.html").read_text(encoding="utf-8")
    return words_of(
        Page(re.sub(r"<head>.*?</head>|<figure>.*?</figure>", "", text, flags=re.S)).text
    )


def test_card_says_what_the_page_says(classifier, tmp_path):
    frame, labels = mixed(40)
    options = {"title": "Loans & more"}
    _, page = card_of(classifier, tmp_path, frame, labels, **options)
    shown = words_of_page(classifier, tmp_path, frame, labels, **options)
    assert sorted(words_of(page.text)) == sorted(shown)
    assert page.tags.count("table") == 8
    assert page.tags.count("h2") == 7
    assert "img" not in page.tags
    for model in (classifier, PSiLONRegressor(**FIXED).fit(*rows())):
        assert sorted(words_of(card_of(model, tmp_path)[1].text)) == sorted(
            words_of_page(model, tmp_path)
        )


def test_what_comes_first_in_the_page_comes_first_in_the_card(tmp_path):
    frame, _ = rows(60)
    model = PSiLONClassifier(**{**FIXED, "reg_strength": 10.0}).fit(frame, np.arange(60) < 57)
    page = card_of(model, tmp_path, frame, np.arange(60) < 57)[1]
    assert "All 60 given rows get the same class" in page.text
    assert page.text.index("All 60 given rows") < page.text.index("How good is it?")


def test_metadata_of_a_classifier(classifier, tmp_path):
    frame, labels = mixed(40)
    facts, _ = card_of(classifier, tmp_path, frame, labels, title="Loans")
    assert facts["library_name"] == "psilonnet"
    assert facts["pipeline_tag"] == "tabular-classification"
    assert {"tabular", "tabular-classification"} <= set(facts["tags"])
    assert facts["metrics"] == ["accuracy", "log_loss", "roc_auc"]
    assert "license" not in facts  # not ours to say
    (model,) = facts["model-index"]
    assert model["name"] == "Loans"
    held_out, given = model["results"]
    assert held_out["dataset"]["name"] == "held-out rows"
    scores = {metric["type"]: metric["value"] for metric in given["metrics"]}
    assert scores["accuracy"] == pytest.approx(classifier.score(frame, labels))
    assert held_out["metrics"][0]["value"] == pytest.approx(classifier.held_out_score_, abs=1e-6)
    assert "# The licence" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_metadata_of_a_regressor(tmp_path):
    frame, y = rows()
    model = PSiLONRegressor(**SMALL).fit(frame, y)
    facts, _ = card_of(model, tmp_path, frame, y)
    assert facts["pipeline_tag"] == "tabular-regression"
    assert facts["metrics"] == ["r_squared"]
    score = facts["model-index"][0]["results"][1]["metrics"][0]["value"]
    assert score == pytest.approx(model.score(frame, y), abs=1e-6)


def test_what_was_not_measured_is_not_said(tmp_path):
    frame, y = rows(30)
    facts, page = card_of(PSiLONRegressor(**{**FIXED, "cv": None}).fit(frame, y), tmp_path)
    assert not {"metrics", "model-index"} & set(facts)
    assert "This fit held nothing out" in page.text


def test_names_cannot_break_a_card(tmp_path):
    frame, y = rows(60, columns=2)
    frame.columns = [EVIL, "# | 1."]
    model = PSiLONClassifier(**FIXED).fit(frame, np.where(y > 0, EVIL, "**b**"))
    facts, page = card_of(
        model, tmp_path, frame[:10], np.where(y > 0, EVIL, "**b**")[:10], title=EVIL + "\ud800"
    )
    assert facts["model-index"][0]["name"].startswith("<script>alert")
    assert "license" not in facts
    assert not {"script", "a", "hr", "em"} & set(page.tags)
    assert page.text.count("<script>alert('$x^{')</script>\"&amp;|`*_[a](b) --- license: mit") >= 4
    assert "# | 1." in page.text


def test_unknown_formats_are_refused_before_any_work(classifier, tmp_path):
    with pytest.raises(ValueError, match=r"one of \['html', 'markdown'\]. Got 'pdf'"):
        classifier.report(tmp_path / "card", format="pdf")
    with pytest.raises(ValueError, match="Got \\['html'\\]"):
        classifier.report(tmp_path / "card", format=["html"])
    for name, format_ in (("card.md", "html"), ("card.pdf", "html"), ("card.html", "markdown")):
        with pytest.raises(ValueError, match=f"A page in {format_} must end in .*{name}': choose"):
            classifier.report(tmp_path / name, format=format_)
    assert not any(tmp_path.iterdir())
