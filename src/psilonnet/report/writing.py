"""A page about a fitted model, written to a file in one of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from psilonnet._files import check_place
from psilonnet.report.card import card_of
from psilonnet.report.page import html_of, page_of

if TYPE_CHECKING:
    import os

FORMATS = {"html": html_of, "markdown": card_of}


def check_format(name: Any) -> None:
    """Refuse a format that no report has."""
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"The format of a report must be one of {[*FORMATS]}. Got {name!r}.")


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    table: Any,
    given: Any,
    title: str | None,
    format: str,  # noqa: A002  # as in the estimators' method
) -> None:
    """Write the page of a fitted estimator; see its method ``report``.

    Parameters
    ----------
    model : fitted estimator
    path : path
    table : table or None
        Rows to prove something about.
    given : ClassMeasures, NumberMeasures or None
        What was measured on these rows.
    title : str or None
    format : {"html", "markdown"}
    """
    check_format(format)
    check_place(Path(path))
    page = page_of(model, table, given, title or "Model card")
    # A name may hold a lone surrogate, which UTF-8 cannot encode.
    text = FORMATS[format](model, page)
    Path(path).write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
