"""One page that holds all there is to say about a fitted model, and needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from psilonnet.report import sections
from psilonnet.report.facts import kind_words, network_of
from psilonnet.report.html import Html, joined
from psilonnet.report.row_section import rows_section, same_class
from psilonnet.report.rows import prove_rows
from psilonnet.report.score_section import score_section


@dataclass(frozen=True)
class Page:
    """What a page about a model says.

    Attributes
    ----------
    title, lead : str
    notice, key, body : Html
        What must be said first (or nothing), the figures that a reader looks for first, and the
        sections.
    measured : list of (str, ClassMeasures or NumberMeasures)
        Rows that the model was not trained on in words, and what was measured on them.
    """

    title: str
    lead: str
    notice: Html
    key: Html
    body: Html
    measured: list[tuple[str, Any]]


def page_of(model: Any, table: Any, given: Any, title: str) -> Page:
    """Return all there is to say about a fitted model.

    Parameters
    ----------
    model : fitted estimator
    table : table or None
        Rows to prove something about.
    given : ClassMeasures, NumberMeasures or None
        What was measured on these rows.
    title : str
    """
    network = network_of(model)
    proofs = None if table is None else prove_rows(model, table)
    held_out = model.measures_["held_out"]
    known = [m for m in (model.measures_["training"], given) if m is not None]
    is_trivial = any(m.is_trivial for m in known)
    parts = [score_section(model, given), sections.proof_section(model, is_trivial=is_trivial)]
    if proofs is not None:
        parts.append(rows_section(model, proofs, given, is_trivial=is_trivial))
    parts += [
        sections.choice_section(model),
        sections.network_section(model, network),
        sections.data_section(model),
        sections.use_section(model),
    ]
    measured = [
        (words, own)
        for words, own in (("held-out rows", held_out), ("given rows", given))
        if own is not None
    ]
    return Page(
        title=title,
        lead=kind_words(model),
        notice=sections.notice(_caveat(model, given) or same_class(proofs)),
        key=sections.key_figures(model, network, measured[-1] if measured else None),
        body=joined(parts, "\n"),
        measured=measured,
    )


def html_of(model: Any, page: Page) -> str:
    """Return a page as an HTML file that needs nothing else."""
    return Template(_own_file("page.html")).substitute(
        title=joined([page.title]),
        kind=type(model).__name__,
        lead=joined([page.lead]),
        notice=page.notice,
        key=page.key,
        style=_own_file("page.css"),
        body=page.body,
    )


def _caveat(model: Any, given: Any) -> str:
    """Return what must be said first, of the given rows or of those in training."""
    said = "" if given is None else given.caveat("given rows")
    return said or str(model.measures_["training"].caveat("rows that the model was trained on"))


def _own_file(name: str) -> Html:
    return Html(files("psilonnet.report").joinpath(name).read_text(encoding="utf-8"))
