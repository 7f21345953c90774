"""One page that holds all there is to say about a fitted model, and needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from psilonnet.report import sections
from psilonnet.report.facts import kind_words, network_of
from psilonnet.report.html import Html, joined
from psilonnet.report.row_section import rows_section, same_class
from psilonnet.report.rows import prove_rows
from psilonnet.report.score_section import score_section

if TYPE_CHECKING:
    import os


def write_report(
    model: Any, path: str | os.PathLike[str], table: Any, given: Any, title: str | None
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
    """
    page = _page_of(model, table, given, title or "Model card")
    # A name may hold a lone surrogate, which UTF-8 cannot encode.
    Path(path).write_text(page, encoding="utf-8", errors="xmlcharrefreplace")


def _page_of(model: Any, table: Any, given: Any, title: str) -> str:
    """Return the page as text."""
    network = network_of(model)
    proofs = None if table is None else prove_rows(model, table)
    measured = [m for m in (model.measures_["training"], given) if m is not None]
    is_trivial = any(m.is_trivial for m in measured)
    parts = [score_section(model, given), sections.proof_section(model, is_trivial=is_trivial)]
    if proofs is not None:
        parts.append(rows_section(model, proofs, given, is_trivial=is_trivial))
    parts += [
        sections.choice_section(model),
        sections.network_section(model, network),
        sections.data_section(model),
        sections.use_section(model),
    ]
    held_out = model.measures_["held_out"]
    score = ("held-out rows", held_out) if given is None else ("given rows", given)
    return Template(_own_file("page.html")).substitute(
        title=joined([title]),
        kind=type(model).__name__,
        lead=joined([kind_words(model)]),
        notice=sections.notice(_caveat(model, given) or same_class(proofs)),
        key=sections.key_figures(model, network, None if score[1] is None else score),
        style=_own_file("page.css"),
        body=joined(parts, "\n"),
    )


def _caveat(model: Any, given: Any) -> str:
    """Return what must be said first, of the given rows or of those in training."""
    said = "" if given is None else given.caveat("given rows")
    return said or str(model.measures_["training"].caveat("rows that the model was trained on"))


def _own_file(name: str) -> Html:
    return Html(files("psilonnet.report").joinpath(name).read_text(encoding="utf-8"))
