"""Pages about small models, read back."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd

from psilonnet import Design

SMALL = {
    "width": 16,
    "depth": 2,
    "max_steps": 30,
    "cv": 2,
    "random_state": 0,
    "designs": [Design(), Design(directions="l2", pieces=8)],
}
FIXED = {**SMALL, "reg_strength": 1e-3, "designs": [Design()]}
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
