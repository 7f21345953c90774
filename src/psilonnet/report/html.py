"""HTML from small pieces: all text is escaped unless it is HTML, so no name can break a page."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def joined(parts: Iterable[str], between: str = "") -> Html:
    """Return parts in a row; plain text among them is escaped."""
    safe = (part if isinstance(part, Html) else escape(part) for part in parts)
    return Html(between.join(safe))


def tag(name: str, *content: str, **attributes: str) -> Html:
    """Return an element; ``class_`` stands for class, and ``aria_label`` for aria-label.

    >>> tag("b", "a < b", class_="note")
    '<b class="note">a &lt; b</b>'
    """
    words = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    said = "".join(f' {key}="{escape(value)}"' for key, value in words.items())
    return Html(f"<{name}{said}>{joined(content)}</{name}>")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Html:
    """Return a table that scrolls by itself where a screen is narrow.

    Parameters
    ----------
    head : sequence of str
    rows : sequences of cells, as many as in the head
    numbers : positions of the columns that hold numbers
    """
    right = {*numbers}

    def cells(name: str, row: Sequence[str], **attributes: str) -> Html:
        kinds: list[dict[str, str]] = [
            {"class_": "number"} if k in right else {} for k in range(len(row))
        ]
        return joined(
            tag(name, cell, **kind, **attributes) for cell, kind in zip(row, kinds, strict=True)
        )

    top = tag("thead", tag("tr", cells("th", head, scope="col")))
    body = tag("tbody", joined(tag("tr", cells("td", row)) for row in rows))
    return tag("div", tag("table", top, body), class_="scroll")


def definitions(pairs: Iterable[tuple[str, str]], class_: str) -> Html:
    """Return names with their values."""
    inner = joined(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", inner, class_=class_)


def number(value: float) -> str:
    """Return a number in few figures.

    >>> number(129747.6), number(0.04567), number(12.0), number(3e-07)
    ('129,748', '0.0457', '12', '3e-07')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def at_most(value: float) -> str:
    """Return a limit in few figures, rounded up: so it is a limit still.

    >>> at_most(0.81206), at_most(129747.2), at_most(12.0)
    ('0.813', '129,748', '12')
    """
    return _rounded(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """Return what is reached in any case in few figures, rounded down.

    >>> at_least(0.81296)
    '0.812'
    """
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, direction: str) -> str:
    exact = Decimal(float(value))
    if not exact.is_finite() or not exact:
        return number(value)
    last = 0 if 1000 <= abs(value) < 1e9 else exact.adjusted() - 2
    return number(float(exact.quantize(Decimal(1).scaleb(last), direction)))
