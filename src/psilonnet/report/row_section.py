"""The section about given rows: how many of them cannot flip, or how far they can move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.plot import shortened
from psilonnet.report.facts import is_classifier
from psilonnet.report.html import Html, at_least, at_most, number, table, tag
from psilonnet.report.pictures import radius_picture
from psilonnet.report.rows import AMOUNTS
from psilonnet.report.sections import figure, paragraph, section

if TYPE_CHECKING:
    from psilonnet.report.rows import RowProofs

ALL_MOVE = "Standard deviations by which all numbers move"
SAME_CLASS = (
    "This is left out: where all rows get the same class, that none of them can flip says nothing "
    "about the model. The question makes sense once it tells the classes apart."
)
SAME_NUMBER = (
    "This is left out: where all rows get nearly the same prediction, that it hardly moves says "
    "nothing about the model."
)


def rows_section(model: Any, proofs: RowProofs, given: Any, *, is_trivial: bool) -> Html:
    """Tell what is proven about the given rows.

    Parameters
    ----------
    model : fitted estimator
    proofs : RowProofs
    given : what was measured on these rows, or None
    is_trivial : bool
        Whether the model gives all rows the same answer: then it is no merit that it stays.
    """
    classes = is_classifier(model)
    title = "Which rows could flip?" if classes else "How far could these rows move?"
    if is_trivial:
        words = SAME_CLASS if classes else SAME_NUMBER
        return section(title, paragraph(words))
    if not model.encoder_.has_numbers:
        how = "is_robust" if classes else "output_range"
        words = f"No column can move by an amount. {how}() with a delta of 'any' speaks of levels."
        return section(title, paragraph(words))
    if classes:
        return section(title, *_classes(model, proofs, given))
    if proofs.moves:
        return section(title, *_numbers(model, proofs))
    words = "This model predicts several numbers: output_range() tells how far each can move."
    return section(title, paragraph(words))


def same_class(proofs: RowProofs | None) -> str:
    """Return that all rows get one class; it may be the right one, but then they show little."""
    if proofs is None or proofs.only_class is None:
        return ""
    return (
        f"All {proofs.count:,} given rows get the same class, {proofs.only_class!r}. They do not "
        "show whether the model tells classes apart, and that none of them flips says little."
    )


def _classes(model: Any, proofs: RowProofs, given: Any) -> tuple[Html, Html]:
    radius = np.asarray(proofs.radius)
    rows = [(*_amount(model, a), f"{np.mean(radius >= a):.1%}") for a in AMOUNTS]
    head = (ALL_MOVE, _example_head(model), "Rows that cannot flip")
    caption = (
        "The share of the given rows whose class provably stays when all their numbers move at the "
        "same time. Where the curve crosses the dashed line, half of the rows are still safe."
    )
    words = (
        f"For each of the {proofs.count:,} given rows: how far can all numbers move together "
        "before its class could change? "
        f"For half of the rows at least {at_least(float(np.median(radius)))} "
        "standard deviations, and the truth can only be better. "
    )
    if given is not None:
        words += f"That a class cannot flip does not make it right: {given.accuracy:.1%} are. "
    found = tag(
        "div", figure(radius_picture(radius), caption), table(head, rows, range(3)), class_="pair"
    )
    return paragraph(words, _method_words(proofs)), found


def _numbers(model: Any, proofs: RowProofs) -> tuple[Html, Html]:
    rows = [
        (*_amount(model, a), at_most(middle), at_most(worst))
        for a, (middle, worst) in zip(AMOUNTS, proofs.moves, strict=True)
    ]
    head = (ALL_MOVE, _example_head(model), "Median row", "Worst row")
    words = (
        f"How far the predictions of the {proofs.count:,} given rows can move at most, in units of "
        "the target, when all numbers move at the same time. "
    )
    return paragraph(words, _method_words(proofs)), table(head, rows, range(4))


def _method_words(proofs: RowProofs) -> str:
    if proofs.method == "global":
        return "The proofs use the global bound; for fewer rows, local ones would say more."
    own = f"Each row has a proof of its own neighbourhood (method {proofs.method})."
    return (
        own if proofs.method == "linear" else f"{own} For fewer rows, linear ones would say more."
    )


def _top_number(model: Any) -> int:
    """Return the column of numbers that can move the output most."""
    kinds = model.encoder_.kinds
    ranked = np.argsort(-model.feature_sensitivity_, kind="stable")
    return next(int(k) for k in ranked if kinds[k] != "category")


def _example_head(model: Any) -> str:
    return f"such as {shortened(model.encoder_.names[_top_number(model)])} by"


def _amount(model: Any, amount: float) -> tuple[str, str]:
    """Return an amount in standard deviations, and in the unit of the column that matters most."""
    return f"{amount:.2f}", number(amount * model.encoder_.codes[_top_number(model)].scale)
