"""What a page tells about a fitted model, read off its attributes."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from psilonnet._names import some_of
from psilonnet._numbers import is_whole
from psilonnet.deploy import CompactNet
from psilonnet.report.html import number
from psilonnet.tables import CategoryCode
from psilonnet.training import loss_words

NOT_SHOWN = ("verbose",)  # has no effect on the model


@dataclass(frozen=True)
class Network:
    """The size of the networks of a model, and what of them is in use.

    Attributes
    ----------
    members : int
    sizes, live : list of float
        Inputs, neurons of each hidden layer, and outputs; averaged over the networks that have
        the layer.
    columns : int
        Columns of the table that are still read.
    weights, nonzero : int
    """

    members: int
    sizes: list[float]
    live: list[float]
    columns: int
    weights: int
    nonzero: int


def network_of(model: Any) -> Network:
    """Return the sizes of a model's networks, and what is left when dead neurons are removed."""
    sizes, live, read, weights, nonzero = [], [], set[int](), 0, 0
    for part in model.net_.networks:
        for member in range(part.members):
            layers = part.net.member(member).layers
            compact = CompactNet(part.net, member)
            sizes.append([model.net_.columns, *(layer.weight.shape[1] for layer in layers)])
            live.append(compact.widths)
            inputs = part.inputs[compact.inputs].tolist()
            read |= {int(model.encoder_.sources[k]) for k in inputs}
            weights += sum(layer.weight.numel() for layer in layers)
            nonzero += sum(int(layer.weight.count_nonzero()) for layer in layers)
    return Network(
        members=model.net_.members,
        sizes=_mean_widths(sizes),
        live=_mean_widths(live),
        columns=len(read),
        weights=weights,
        nonzero=nonzero,
    )


def _mean_widths(widths: list[list[int]]) -> list[float]:
    """Return the mean width of each layer over the networks that have it; outputs come last."""
    deepest = max(map(len, widths))
    hidden = [
        float(np.mean([own[k] for own in widths if k < len(own) - 1])) for k in range(deepest - 1)
    ]
    return [*hidden, float(widths[0][-1])]


COLUMNS = {
    "log_tails": "numbers with tails like a logarithm",
    "identity": "numbers as they are",
    "clipped": "numbers clipped smoothly",
}
LAYERS = {"mlp": "ReLU layers", "crelu": "CReLU layers", "resnet": "residual CReLU blocks"}


def design_words(design: Any) -> str:
    """Return in plain words what networks of a design are made of."""
    split = f", each column in {design.pieces} pieces" if design.pieces > 1 else ""
    return (
        f"{design.directions.upper()} directions, {LAYERS[design.architecture]}, "
        f"{COLUMNS[design.columns]}{split}"
    )


def fit_words(model: Any) -> str:
    """Return in a few sentences how the networks of a model were trained and chosen."""
    picks = len(model.members_["weight"])
    each = model.net_.members // picks
    designs = len(model.designs_)
    kinds = "One design of networks was" if designs == 1 else f"{designs} designs of networks were"
    if model.path_ is None:
        return (
            f"{kinds} trained from {each} starts on all rows, and the networks are averaged. "
            "Nothing was held out, so nothing could be compared: the regularisation rose to "
            f"{number(model.reg_strength_)}, which suits most small tables."
        )
    count = len(model.path_["design"])
    snapshots = "one snapshot was" if count == 1 else f"{count} snapshots were"
    pruned = " What was chosen was then trained on towards exact zeros." if model.prune else ""
    named = repr(model.selection) if isinstance(model.selection, str) else number(model.selection)
    return (
        f"{kinds} trained {each} times, each time without the rows that were held out. While they "
        f"were trained their regularisation rose, and {snapshots} kept on the way. The held-out "
        f"rows chose what is averaged (selection {named}): {picks} of them, each with {each} "
        f"networks.{pruned}"
    )


def is_classifier(model: Any) -> bool:
    """Whether a model predicts classes."""
    return hasattr(model, "classes_")


def score_name(model: Any) -> str:
    """Return what the score of a model is called."""
    if is_classifier(model):
        return "Accuracy"
    return "D²" if model.target_.is_sorted else "R²"


def kind_words(model: Any) -> str:
    """Return in one sentence what a model does, and what it has seen."""
    if is_classifier(model):
        classes = model.classes_.tolist()
        does = f"A classifier with {len(classes)} classes: {some_of(classes)}."
    else:
        does = f"A regressor that predicts {_predicted_words(model)}."
    columns = len(model.encoder_.names)
    rows = f"{model.n_rows_:,} rows of {columns:,} {'column' if columns == 1 else 'columns'}"
    return f"{does} It has learned from {rows}."


def _predicted_words(model: Any) -> str:
    count, levels = model.target_.outputs, getattr(model.target_, "levels", ())
    if levels:
        said = "quantile " if len(levels) == 1 else "quantiles "
        return f"the {said}" + ", ".join(f"{level:g}" for level in levels)
    if model.target_.is_log:
        return "the mean of counts" if count == 1 else f"the means of {count} counts"
    return "one number" if count == 1 else f"{count} numbers"


def changed_parameters(model: Any) -> list[tuple[str, str, str]]:
    """Return name, value and default of the parameters that are not at their default."""
    arguments = inspect.signature(type(model).__init__).parameters
    return [
        (name, _said(value), _said(arguments[name].default))
        for name, value in sorted(model.get_params(deep=False).items())
        if name not in NOT_SHOWN
        and _said(value) != _said(arguments[name].default)
        and (name != "cv" or is_whole(value))  # files do not hold splits of rows
    ]


def _said(value: Any) -> str:
    """Return a parameter as text, the same in every process."""
    if isinstance(value, np.random.RandomState):
        return "a RandomState"
    if callable(value):
        return repr(loss_words(value))
    return repr(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value)


def column_words(kind: str, code: Any) -> str:
    """Return what a column held in training."""
    if isinstance(code, CategoryCode):
        more = [
            word for word, has in (("rare", code.has_rare), ("missing", code.has_missing)) if has
        ]
        return some_of(code.levels) + "".join(f", {word}" for word in more)
    if code.scale == 0:
        return "constant, some missing" if code.has_missing else "constant, not used"
    low, high = (_day(v) if kind == "time" else number(v) for v in (code.low, code.high))
    return f"{low} to {high}" + (", some missing" if code.has_missing else "")


def _day(days: float) -> str:
    return str(np.datetime64(math.floor(days), "D"))
