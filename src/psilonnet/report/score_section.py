"""The section about how good a model is, beside always saying the most frequent class."""

from __future__ import annotations

from typing import Any

import numpy as np

from psilonnet.report.confusion import confusion_table
from psilonnet.report.facts import is_classifier
from psilonnet.report.html import Html, joined, table, tag
from psilonnet.report.sections import paragraph, section

Measured = list[tuple[str, Any]]  # rows in words, and what was measured on them

R2 = (
    "R² is the share of the target's variance that is explained: 1 is perfect, and 0 is no better "
    "than always saying the mean."
)
D2 = (
    "D² is the share of a loss that the model saves, beside always saying what is best for these "
    "rows: 1 is perfect, and 0 is no better."
)
ACCURACY = "Accuracy is the share of rows whose class is predicted rightly."
AUC = (
    "AUC is how probably a row of a class is given a higher probability of it than a row of "
    "another: 1 is perfect, 0.5 is chance."
)
LOG_LOSS = (
    "Log loss is the mean of minus the logarithm of the probability of the true class: 0 is "
    "perfect."
)
NO_MODEL = (
    "The last line needs no model: it always says the class that is most frequent among these "
    "rows, and the shares of the classes for probabilities."
)


def score_section(model: Any, given: Any) -> Html:
    """Tell how good the model is on rows that it was not trained on.

    Parameters
    ----------
    model : fitted estimator
    given : what was measured on the rows given to the report, or None
    """
    held_out = model.measures_["held_out"]
    rows: Measured = []
    if held_out is not None:
        rows.append(("Rows held out by the fit itself", held_out))
    if given is not None:
        rows.append((f"{given.rows:,.0f} rows given to this report", given))
    if not rows:
        return section("How good is it?", paragraph(_about_held_out(model)))
    about = joined([paragraph(" ".join(_about(model, rows))), paragraph(_about_held_out(model))])
    if not is_classifier(model):
        return section("How good is it?", _numbers(rows), about)
    which = "given rows" if given is not None else "held-out rows"
    words = f"Lines are the true classes of the {which}, columns what the model says of them."
    return section(
        "How good is it?",
        _classes(rows),
        about,
        tag("h3", "What is taken for what"),
        confusion_table(rows[-1][1]),
        paragraph(words),
    )


def _numbers(rows: Measured) -> Html:
    last = rows[-1][1]
    names = [*dict.fromkeys(name for _, measured in rows for name in measured.explained)]
    heads = [*([] if last.levels else ["R²"]), *(f"D² of the {name}" for name in names)]
    scores = [
        (
            words,
            *([] if last.levels else [_figure(measured.score)]),
            *(_figure(measured.explained.get(name)) for name in names),
        )
        for words, measured in rows
    ]
    return table(("Rows", *heads), scores, numbers=range(1, len(heads) + 1))


def _classes(rows: Measured) -> Html:
    lines = [
        (words, *map(_figure, (measured.accuracy, measured.auc, measured.log_loss)))
        for words, measured in rows
    ]
    last = rows[-1][1]
    label, share = last.most_frequent
    chance = None if last.auc is None else 0.5
    loss = None if last.log_loss is None else _entropy(list(last.shares.values()))
    lines.append((f"Always the most frequent class, {label}", *map(_figure, (share, chance, loss))))
    return table(("Rows", "Accuracy", "AUC", "Log loss"), lines, numbers=range(1, 4))


def _figure(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.4f}"


def _entropy(shares: list[float]) -> float:
    return max(0.0, float(-np.dot(shares, np.log(shares))))


def _about(model: Any, rows: Measured) -> list[str]:
    if not is_classifier(model):
        found = rows[-1][1]
        return [*([] if found.levels else [R2]), *([D2] if found.explained else [])]
    last = rows[-1][1]
    loss = LOG_LOSS
    if last.log_loss is None:
        loss = "Some rows are of classes that the model does not know, so there is no log loss."
    return [ACCURACY, *_about_auc(last), loss, NO_MODEL]


def _about_auc(measured: Any) -> list[str]:
    if measured.auc is None:
        return ["AUC is not defined: all rows are of one class."]
    classes = len(measured.labels)
    if classes == 2:
        return [AUC]
    found = sum(k < classes for k in measured.shares)
    over = "all classes" if found == classes else f"the {found} of {classes} that have rows here"
    return [AUC, f"It is the mean of each class against the rest, over {over}."]


def _about_held_out(model: Any) -> str:
    if model.measures_["held_out"] is None:
        return (
            "This fit held nothing out, so it has no score of its own: give the report rows that "
            "the model has not seen."
        )
    return (
        "The held-out score is that of networks that were not trained on these rows. But what is "
        "averaged was chosen on them, so it is slightly optimistic."
    )
