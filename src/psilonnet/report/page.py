"""One page that holds all there is to say about a fitted model, and needs nothing else."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._extras import require
from psilonnet.report import sections
from psilonnet.report.facts import is_classifier, kind_words, network_of
from psilonnet.report.html import Html, joined
from psilonnet.report.row_section import rows_section
from psilonnet.report.rows import prove_rows

if TYPE_CHECKING:
    import os


def write_report(
    model: Any, path: str | os.PathLike[str], table: Any, target: Any, title: str | None
) -> None:
    """Write the page of a fitted estimator; see its method ``report``."""
    if target is not None and table is None:
        raise ValueError("A report with y needs X, the rows that y belongs to. Got y only.")
    require("matplotlib", "plot")  # before any work
    page = page_of(model, table, target, title or "Model card")
    # A name may hold half a character, which no file can.
    Path(path).write_text(page, encoding="utf-8", errors="xmlcharrefreplace")


def page_of(model: Any, table: Any, target: Any, title: str) -> str:
    """Return the page as text."""
    given = None if target is None else _score(model, table, target)
    score = ("held-out rows", model.held_out_score_) if model.held_out_score_ is not None else None
    if given:
        score = ("given rows", given[1])
    network = network_of(model)
    parts = [sections.score_section(model, given), sections.proof_section(model)]
    if table is not None:
        parts.append(rows_section(model, prove_rows(model, table)))
    parts += [
        sections.choice_section(model),
        sections.network_section(model, network),
        sections.data_section(model),
        sections.use_section(model),
    ]
    return Template(_own_file("page.html")).substitute(
        title=joined([title]),
        kind=type(model).__name__,
        lead=joined([kind_words(model)]),
        key=sections.key_figures(model, network, score),
        style=_own_file("page.css"),
        body=joined(parts, "\n"),
    )


def _score(model: Any, table: Any, target: Any) -> tuple[int, float, float | None]:
    """Return the number of rows, the score, and what always the same class would score."""
    score = float(model.score(table, target))
    if not is_classifier(model):
        return len(target), score, None
    _, counts = np.unique(np.asarray(target).astype(str), return_counts=True)
    return len(target), score, float(counts.max() / counts.sum())


def _own_file(name: str) -> Html:
    return Html(files("psilonnet.report").joinpath(name).read_text(encoding="utf-8"))
