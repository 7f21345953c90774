"""The HTML of a page as Markdown: the same words and tables, without the pictures."""

from __future__ import annotations

import re
from html.parser import HTMLParser

BLOCKS = {
    "h2": "## {}",
    "h3": "### {}",
    "pre": "```python\n{}\n```",
    "summary": "<summary>{}</summary>",
    "details": "</details>{}",
}
LEFT_OUT = ("figure", "svg", "style")
_MARKS = re.compile(r"[\\`*_\[\]<>|~$#]|&(?=#?\w+;)|(?<=:)/(?=/)|(?<=\w)@(?=\w)|(?<=[wW]{3})\.")
# What begins a list, a rule or another block at the start of a line; digits cannot be escaped.
_START = re.compile(r"^(?:(?P<number>\d+)(?=[.)](?:\s|$))|(?=[-+=:]))")


def as_markdown(page: str) -> str:
    """Return HTML that a page is made of as Markdown (the GitHub flavour)."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return "\n\n".join(reader.blocks)


def escaped(text: str) -> str:
    r"""Return words of a line in which nothing has a meaning of Markdown or HTML.

    >>> print(escaped("a_b <i> | 5 * 3"))
    a\_b \<i\> \| 5 \* 3
    """
    return _MARKS.sub(lambda found: f"\\{found[0]}", re.sub(r"\s+", " ", text))


def _paragraph(words: str) -> str:
    """Return escaped words as a paragraph, whatever they begin with."""
    return _START.sub(lambda found: f"{found['number'] or ''}\\", words.strip())


class _Reader(HTMLParser):
    """Collects the blocks of Markdown of what it is fed."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.left_out = 0  # how deep we are in what has no words
        self.is_code = False
        self.words: list[str] = []  # of the block or the cell that is open
        self.terms: list[str] = []  # of a list, each followed by its value
        self.rows: list[list[str]] = []

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.left_out += name in LEFT_OUT
        if self.left_out:
            return
        if name == "span" and ("class", "line") in attributes and self.words:
            self.words.append("<br>")
        elif name == "strong":
            self.words.append("**")
        elif name == "pre":
            self.is_code = True
        elif name == "tr":
            self.rows.append([])
        elif name == "details":
            self.blocks.append("<details open>" if ("open", "") in attributes else "<details>")

    def handle_endtag(self, name: str) -> None:
        if self.left_out:
            self.left_out -= name in LEFT_OUT
            return
        self.is_code &= name != "pre"
        if name in BLOCKS:
            self.blocks.append(BLOCKS[name].format(self._taken()))
        elif name == "p":
            self.blocks.append(_paragraph(self._taken()))
        elif name == "strong":
            self.words.append("**")
        elif name in ("td", "th"):
            self.rows[-1].append(self._taken().strip())
        elif name == "table":
            self.blocks.append(_table(self.rows))
            self.rows = []
        elif name in ("dt", "dd"):
            self.terms.append(_paragraph(self._taken()))
        elif name == "dl":
            pairs = zip(self.terms[::2], self.terms[1::2], strict=True)
            self.blocks.append("\n".join(f"- {term}: **{value}**" for term, value in pairs))
            self.terms = []

    def handle_data(self, data: str) -> None:
        if self.left_out or not (self.is_code or data.strip()):
            return
        self.words.append(data if self.is_code else escaped(data))

    def _taken(self) -> str:
        words, self.words = "".join(self.words), []
        return words


def _table(rows: list[list[str]]) -> str:
    """Return a table; columns that hold nothing, such as of bars, are left out."""
    kept = [k for k in range(len(rows[0])) if any(row[k] for row in rows)]
    lines = [[row[k] or " " for k in kept] for row in rows]
    lines.insert(1, ["---"] * len(kept))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
