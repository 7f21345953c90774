"""A model card for the Hugging Face Hub: the page as Markdown, behind a block of metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psilonnet.report.facts import is_classifier
from psilonnet.report.markdown import as_markdown, escaped

if TYPE_CHECKING:
    from psilonnet.report.page import Page

LICENSE = "# The licence of the model is not known to psilonnet. Yours, such as:  license: mit"


def card_of(model: Any, page: Page) -> str:
    """Return a model card: what the Hub reads, and what people read.

    Parameters
    ----------
    model : fitted estimator
    page : Page
    """
    notice = as_markdown(page.notice)
    parts = [
        _metadata(model, page),
        f"# {escaped(page.title)}",
        f"`{type(model).__name__}`. {escaped(page.lead)}",
        f"> **{notice}**" if notice else "",
        as_markdown(page.key),
        as_markdown(page.body),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _metadata(model: Any, page: Page) -> str:
    """Return the block of metadata: YAML, whose values are written as JSON, a part of it."""
    task = "tabular-classification" if is_classifier(model) else "tabular-regression"
    measured = [(rows, _metrics(model, m)) for rows, m in page.measured]
    metrics = sorted({metric["type"] for _, own in measured for metric in own})
    facts: dict[str, Any] = {
        "library_name": "psilonnet",
        "pipeline_tag": task,
        "tags": ["psilonnet", "tabular", task, "certified-robustness"],
        "metrics": metrics,
        "model-index": [
            {
                "name": _plain(page.title),
                "results": [
                    {
                        "task": {"type": task},
                        "dataset": {"name": rows, "type": "tabular"},
                        "metrics": own,
                    }
                    for rows, own in measured
                    if own
                ],
            }
        ],
    }
    if not metrics:  # nothing was held out, and no rows were given
        del facts["metrics"], facts["model-index"]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["---", LICENSE, *lines, "---"])


def _metrics(model: Any, measured: Any) -> list[dict[str, Any]]:
    """Return what was measured under the names that the Hub has for it."""
    if is_classifier(model):
        found = {
            "accuracy": ("Accuracy", measured.accuracy),
            "roc_auc": ("AUC", measured.auc),
            "log_loss": ("Log loss", measured.log_loss),
        }
    else:
        known = None if measured.levels else measured.score
        found = {"r_squared": ("R²", known)}
        for name, share in measured.explained.items():
            found[f"d2_{name.lower().replace(' ', '_')}"] = (f"D² of the {name}", share)
    return [
        {"type": kind, "name": name, "value": round(value, 6)}
        for kind, (name, value) in found.items()
        if value is not None
    ]


def _plain(text: str) -> str:
    """Return text without what YAML does not take, such as control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
