"""Text is escaped, whatever it holds."""

import numpy as np

from psilonnet import PSiLONClassifier
from psilonnet.report.html import Html, tag
from report.pages import FIXED, page_of, rows

EVIL = "<script>alert('$x^{')</script>\"&amp;"


def test_names_and_labels_are_escaped(tmp_path):
    frame, y = rows(60, columns=2)
    frame.columns = [EVIL, "日本語の列" * 30]
    labels = np.where(y > 0, EVIL, "</style><b>")
    model = PSiLONClassifier(**FIXED).fit(frame, labels)
    page = page_of(model, tmp_path, frame[:10], labels[:10], title=EVIL)
    assert page.text.count(EVIL) >= 4
    assert "b" not in page.tags


def test_text_is_escaped_unless_it_is_html():
    assert tag("p", "<b>", Html("<i>")) == "<p>&lt;b&gt;<i></p>"
    assert tag("p", title='"') == '<p title="&quot;"></p>'
