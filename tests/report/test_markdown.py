"""Markdown says what the HTML says, whatever the names hold: read back by another reader."""

import re

import pytest
from markdown_it import MarkdownIt

from psilonnet.report.html import definitions, joined, table, tag
from psilonnet.report.markdown import as_markdown, escaped
from report.pages import Page

READER = MarkdownIt("commonmark", {"html": True}).enable("table")
WORDS = (
    "<script>alert('$x^{')</script>\"&amp; &copy; &#35;",
    "a|b || c\\|d \\",
    "`code` ``x`",
    "**bold** _so_ ~~gone~~ *",
    "[link](http://x.y) ![picture](z) https://x.y a@b.cd",
    "# of rooms #",
    "1. first",
    "2) second",
    "- point",
    "+ point",
    "===",
    "---",
    "> said",
    "    four spaces",
    "two\nlines",
    "日本語の列",
    "<br>",
)


def read(markdown):
    """The words that a reader of Markdown shows, and its tags."""
    page = Page(READER.render(markdown))
    return page.text, page.tags


def one_line(words):
    return " ".join(words.split())


@pytest.mark.parametrize("words", WORDS)
def test_words_stay_as_they_are(words):
    assert read(as_markdown(tag("p", words))) == (one_line(words), ["p"])
    assert read(as_markdown(tag("h2", words))) == (one_line(words), ["h2"])
    text, tags = read(as_markdown(table((words, "b"), [("c", words)])))
    assert text == f"{one_line(words)} b c {one_line(words)}"
    assert tags.count("td") == 2
    text, tags = read(as_markdown(definitions([(words, words)], "key")))
    assert text == f"{one_line(words)}: {one_line(words)}"
    assert tags == ["ul", "li", "strong"]


def test_words_from_everywhere_do_not_meet():
    said = " ".join(WORDS)
    assert read(escaped(said)) == (one_line(said), ["p"])


def test_code_is_left_as_it_is():
    code = 'model = load("*_a_*")\n\n# <b> | 1\nmodel.predict(table)'
    markdown = as_markdown(tag("pre", tag("code", code)))
    assert markdown == f"```python\n{code}\n```"


def test_pictures_and_columns_of_bars_are_left_out():
    bar = tag("span", tag("i", style="width:3%"), class_="bar")
    rows = [("a", bar, joined([tag("span", "1", class_="line"), tag("span", "2", class_="line")]))]
    page = joined(
        [tag("figure", tag("svg", "x"), tag("figcaption", "y")), table(("A", "", "B"), rows)]
    )
    assert as_markdown(page) == "| A | B |\n| --- | --- |\n| a | 1<br>2 |"


def test_what_is_folded_away_stays_folded():
    page = tag("details", tag("summary", "7 columns"), table(("A",), [("b",)]))
    text, tags = read(as_markdown(page))
    assert text == "7 columns A b"
    assert tags[:2] == ["details", "summary"]
    assert re.search(r"^<details open>$", as_markdown(tag("details", open="")), re.M)
