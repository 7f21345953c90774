"""The sections of a page, each a heading with words, tables and pictures."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._version import __version__
from psilonnet.report.facts import (
    changed_parameters,
    column_words,
    design_words,
    fit_words,
    is_classifier,
    score_name,
)
from psilonnet.report.html import Html, at_most, definitions, joined, number, table, tag
from psilonnet.report.pictures import curves_picture, features_picture, trade_off_picture
from psilonnet.tables import NumberCode

if TYPE_CHECKING:
    from psilonnet.report.facts import Network

TOP = 5  # columns whose bounds are written out
SHORT = 20  # columns; a longer list is folded away
UNITS = {
    "number": "one unit",
    "time": "one day",
    "duration": "one day",
    "category": "a change of level",
}
PROOF_STARTS = ("Proven: ", "The columns that can move it most:")  # lines of summary()
SMALL_BOUND = "But this model gives all rows the same answer: then a small bound is no merit. "
LOADING = """import psilonnet

# Written by model.save("model.psilon").
model = psilonnet.load("model.psilon")

# A table with the columns above.
model.predict(table)

"""
RADIUS = """# How far the numbers of each row can move before it flips.
model.certified_radius(table)"""
RANGE = """# Where predictions can go if numbers move by 0.05 standard deviations.
model.output_range(table, 0.05)"""
LOG_ODDS = (
    "Log-odds are how a classifier counts: 0 is a probability of 50 %, 1 is 73 %, 2 is 88 %, and "
    "the class changes where they pass 0."
)
LOGITS = (
    "Every class has a logit, and the largest one wins; a lead of 1 makes a class 2.7 times as "
    "probable as the other."
)


def section(heading: str, *content: str) -> Html:
    """Return a section of a page."""
    return tag("section", tag("h2", heading), *content)


def figure(picture: Html, caption: str) -> Html:
    """Return a picture with words below it."""
    return tag("figure", picture, tag("figcaption", caption))


def paragraph(*words: str, class_: str = "text") -> Html:
    """Return a paragraph."""
    return tag("p", *words, class_=class_)


def notice(words: str) -> Html:
    """Return what a reader must know before anything else, if there is such a thing."""
    return tag("p", words, class_="notice", role="note") if words else Html()


def key_figures(model: Any, network: Network, score: tuple[str, Any] | None) -> Html:
    """Return the numbers that a reader looks for first.

    Parameters
    ----------
    model : fitted estimator
    network : Network
    score : some rows in words, and what was measured on them; or None
    """
    numbers = np.array([kind != "category" for kind in model.encoder_.kinds])
    bound = model.feature_sensitivity_[numbers].sum()
    pairs = []
    if score and score[1].score is not None:
        words = f"{score_name(model)} on {score[0]}"
        if is_classifier(model):
            words += "; always saying {} scores {:.3f}".format(*score[1].most_frequent)
        pairs.append((words, f"{score[1].score:.3f}"))
    if numbers.any():
        moves = "move of the mean's logarithm" if model.target_.is_log else "output's move"
        what = f"proven limit of the {moves}, for one standard deviation of every number"
        pairs.append((what, at_most(bound)))
    share = network.nonzero / network.weights
    pairs += [
        (f"of {len(model.encoder_.names):,} columns in use", f"{network.columns:,}"),
        (f"of {network.weights:,} weights in use", f"{share:.0%}"),
    ]
    return definitions(pairs, "key")


def proof_section(model: Any, *, is_trivial: bool) -> Html:
    """Tell how far the output can move, in words, in units of the table, and as a picture.

    Parameters
    ----------
    model : fitted estimator
    is_trivial : bool
        Whether it gives all rows the same answer, so that a small bound is no merit.
    """
    summary = model.summary().splitlines()
    first = next(k for k, line in enumerate(summary) if line.startswith(PROOF_STARTS))
    sentence = " ".join(summary[first : first + 2])  # what is proven, without columns
    words = "This holds for every row there can be, not for most of those that were tried. "
    words += SMALL_BOUND if is_trivial else ""
    if is_classifier(model):
        words += LOG_ODDS if len(model.classes_) == 2 else LOGITS
    caption = (
        "One bar per column: the most that it can move the output by itself, with one "
        "standard deviation of a number or any change of level. The longer the bar, the more its "
        "errors can matter."
    )
    # A number that never varies can still be missing, and that can move the output.
    marked = [isinstance(c, NumberCode) and c.has_missing for c in model.encoder_.codes]
    still = int(((model.feature_sensitivity_ == 0) & ~np.array(marked)).sum())
    if still:
        words = f"{words.rstrip()} {still:,} of the columns cannot move it at all."
    return section(
        "What is proven?",
        paragraph(sentence, class_="proof"),
        *[paragraph(said, class_="proof") for said in model.direction_words()],
        paragraph(words),
        tag(
            "div",
            figure(features_picture(model), caption),
            tag("div", tag("h3", "In units of the table"), _bounds_table(model)),
            class_="pair",
        ),
    )


def _bounds_table(model: Any) -> Html:
    rows = []
    for k in np.argsort(-model.feature_sensitivity_, kind="stable")[:TOP]:
        kind = model.encoder_.kinds[k]
        moves, limits = [UNITS[kind]], [at_most(model.feature_sensitivity_raw_[k])]
        if kind != "category":
            days = "" if kind == "number" else " days"
            moves.append(f"{number(model.encoder_.codes[k].scale)}{days}")
            limits.append(at_most(model.feature_sensitivity_[k]))
        rows.append((_name(model, k), _lines(moves), _lines(limits)))
    by = "moves by a unit, or by one standard deviation"
    return table(("Column", by, "output, at most"), rows, numbers=[2])


def _lines(words: list[str]) -> Html:
    """Return lines that stay whole, below each other."""
    return joined(tag("span", word, class_="line") for word in words)


def _name(model: Any, k: int) -> Html:
    """Return the name of a column, which may be long."""
    return tag("span", model.encoder_.names[k], class_="name")


def choice_section(model: Any) -> Html:
    """Show what was trained, what was chosen, and how training went."""
    curves = figure(
        curves_picture(model),
        "Training of the heaviest design, averaged over its networks. The loss should fall and "
        "level off; held-out loss that turns up again is a sign of overfitting. Below, the bound "
        "on the network's own output, in its own scale.",
    )
    pictures = [curves]
    if model.path_ is not None and len(model.path_["design"]) > 1:
        trade_off = figure(
            trade_off_picture(model),
            "Each point is a snapshot, and each line one design while its regularisation rises. "
            "Further down is more accurate, further left proves more. Rings mark what is averaged, "
            "with its weight; an average can be better than each of its parts.",
        )
        pictures = [trade_off, curves]
    return section(
        "How was it found?",
        paragraph(fit_words(model)),
        _members_table(model),
        tag("div", *pictures, class_="pair"),
    )


def _members_table(model: Any) -> Html:
    members = model.members_
    rows = [
        (f"{weight:.0%}", design_words(model.designs_[int(design)]), number(strength))
        for weight, design, strength in zip(
            members["weight"], members["design"], members["reg_strength"], strict=True
        )
    ]
    return table(("Weight", "Design", "Strength"), rows, numbers=[2])


def network_section(model: Any, network: Network) -> Html:
    """Tell how large the network is, and what of it is in use."""
    nets = "One network" if network.members == 1 else f"{network.members} networks, averaged"
    share = network.nonzero / network.weights
    words = (
        f"{nets}. Of {network.weights:,} weights, {network.nonzero:,} are not zero ({share:.1%}). "
    )
    if network.nonzero < network.weights:
        words += "Neurons that no longer reach the output can be removed, with the same outputs."
    else:
        words += "It was not pruned; a fit with prune=True ends with exact zeros."
    measures = (
        ("Exact zeros, mean over weight vectors", f"{model.sparsity_:.3f}"),
        ("Near-sparsity, mean over weight vectors", f"{model.near_sparsity_:.3f}"),
    )
    return section(
        "How large is it?",
        paragraph(words),
        _layers_table(network),
        definitions(measures, "facts"),
    )


def _layers_table(network: Network) -> Html:
    last = len(network.sizes) - 1
    names = ["Inputs", *(f"Hidden layer {k}" for k in range(1, last)), "Outputs"]
    rows = []
    for label, size, live in zip(names, network.sizes, network.live, strict=True):
        filled = tag("i", style=f"width:{100 * live / size:.1f}%")
        bar = tag("span", filled, class_="bar", aria_hidden="true")
        rows.append((label, bar, f"{live:,.0f}", f"{size:,.0f}"))
    return table(("Layer", "", "Live", "Of"), rows, numbers=[2, 3])


def data_section(model: Any) -> Html:
    """List settings and columns."""
    changed = changed_parameters(model)
    settings = (
        table(
            ("Parameter", "Value", "Default"),
            [(_code(a), _code(b), _code(c)) for a, b, c in changed],
        )
        if changed
        else paragraph("All parameters are at their defaults.")
    )
    encoder = model.encoder_
    rows = [
        (_name(model, k), kind, column_words(kind, encoder.codes[k]))
        for k, kind in enumerate(encoder.kinds)
    ]
    count = len(rows)
    fold: dict[str, str] = {"open": ""} if count <= SHORT else {}
    title = tag("summary", f"{count:,} {'column' if count == 1 else 'columns'}")
    listed = table(("Column", "Kind", "In training"), rows)
    return section(
        "Data and settings",
        tag("h3", "Settings that differ from the defaults"),
        settings,
        tag("h3", "Columns"),
        tag("details", title, listed, **fold),
    )


def _code(text: str) -> Html:
    """Return text as code."""
    return tag("code", text)


def use_section(model: Any) -> Html:
    """Tell how to load the model, and what wrote the page."""
    proof = RADIUS if is_classifier(model) else RANGE
    others = [(name, version(name)) for name in ("torch", "numpy", "scikit-learn")]
    versions = [("Python", python_version()), ("psilonnet", __version__), *others]
    return section(
        "How to use it",
        tag("pre", _code(LOADING + proof)),
        tag("h3", "Versions that wrote this page"),
        definitions(versions, "facts"),
    )
