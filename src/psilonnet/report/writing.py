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
ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown")}


def check_page(path: str | os.PathLike[str], format: Any) -> None:  # noqa: A002  # as in the estimators' method
    """Refuse a format that no report has, and a name that says that the page is something else."""
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(f"The format of a report must be one of {[*FORMATS]}. Got {format!r}.")
    if Path(path).suffix.lower() not in (*ENDINGS[format], ""):
        raise ValueError(
            f"A page in {format} must end in {' or '.join(ENDINGS[format])}. Got {str(path)!r}: "
            "choose another name, or another format."
        )
    check_place(Path(path))


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
    check_page(path, format)
    page = page_of(model, table, given, title or "Model card")
    # A name may hold a lone surrogate, which UTF-8 cannot encode.
    text = FORMATS[format](model, page)
    Path(path).write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
