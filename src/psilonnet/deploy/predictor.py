"""Predict with an exported model: this file, ``manifest.json`` and ``weights.npz``, and NumPy.

    from predictor import Predictor
    model = Predictor("folder")
    model.predict(table)

A table is a pandas, polars or Arrow frame, a dict of columns, a list of dicts, or rows of cells in
the order of the columns. Everything is computed in float64.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import io
import json
import math
import numbers
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

FORMAT = 4
WEIGHTS = ("weights.npz", "weights.new.npz")  # the second: an export was stopped before the move
DAY = 86_400_000.0  # milliseconds
BEND = 3.0  # from about here on mapped numbers are clipped, or grow like a logarithm
FAR = 1e15  # no number is farther from the center than this many standard deviations
FARTHEST = 1e12  # standard deviations; a model that depends on nothing is certified this far
UNIT = 2.0**-53
LARGEST_LOG = 700.0  # beyond it, a mean would overflow
DAYS = ("time", "duration")  # kinds of columns whose unit is a day
BOOLS = (bool, np.bool_)
SPANS = (datetime.timedelta, np.timedelta64)
NO_WORDS = (numbers.Number, datetime.date, np.datetime64, *SPANS)
BLOCK = 256  # rows that are computed at a time
NEAR_BLOCK = 64  # rows whose neighbourhoods are looked at at a time: they take more memory
LEAST = 2.0**-500  # no product of two such numbers underflows
LOST = LEAST**2  # more than a sum of products loses by underflow
DOUBLINGS, HALVINGS = 8, 8  # of the search for a local radius, which is found to 0.4 %
METHODS = ("global", "local")
NO_ROWS = "A table must have at least one row. Got none: give rows to predict."


class OutOfRangeWarning(UserWarning):
    """Rows lie far outside the range of the training rows."""


class LossWarning(UserWarning):
    """Cells count as none of the levels of training."""


class Notes:
    """What there is to say about rows.

    Attributes
    ----------
    far : list of ndarray
        How many are far out in each scaled column, of tables that have any.
    unseen : dict from column to (int, int, str)
        How many cells are no level of training, of how many that are not missing, and an example.
    """

    def __init__(self) -> None:
        self.far: list[Array] = []
        self.unseen: dict[str, tuple[int, int, str]] = {}

    def add(self, name: str, words: Array, code: dict[str, Any]) -> None:
        """Count the words that are none of the levels; rare ones were seen."""
        if code["has_rare"]:
            return
        levels = set(code["levels"])
        unseen = [word for word in words if word is not None and word not in levels]
        count, cells, example = self.unseen.get(name, (0, 0, ""))
        cells += sum(word is not None for word in words)
        self.unseen[name] = count + len(unseen), cells, example or (unseen[0] if unseen else "")

    def unknown(self) -> str:
        """Return what is said of columns most of whose words are no levels, or nothing."""
        counts = self.unseen.items()
        names = [f"{n!r} (such as {word!r})" for n, (k, cells, word) in counts if 2 * k > cells]
        if not names:
            return ""
        more = [f"and {len(names) - 5} more"] if len(names) > 5 else []
        return (
            "Most values of these columns were not among the levels of fit, and count as none of "
            f"them: {', '.join([*names[:5], *more])}. Check how they are written."
        )


class Predictor:
    """An exported model.

    Parameters
    ----------
    folder : path
        Where ``export_numpy`` wrote the model.

    Attributes
    ----------
    names : list of str
        The columns of the table.
    classes : list of labels, or None for a regressor
    levels : list of float
        Which quantiles are predicted, if any are; several are sorted.
    """

    def __init__(self, folder: Any) -> None:
        manifest, weights = read_export(folder)
        with np.load(io.BytesIO(weights), allow_pickle=False) as arrays:
            self._networks = Networks(manifest["views"], manifest["parts"], arrays)
            self._moves = arrays["moves"]  # (combinations, encoded columns)
        self._views, self._parts = self._networks.views, self._networks.parts
        self._members = sum(len(part.weight) for part in self._parts)
        self._encoder = _Encoder(**manifest["encoder"])
        self.names: list[str] = manifest["encoder"]["names"]
        target = manifest["target"]
        self.classes: list[Any] | None = target.get("classes")
        self._one_target = bool(manifest["one_target"])
        self._temperature = float(target.get("temperature", 1.0))
        self._center = np.array(target.get("center", [0.0]))
        self._scale = np.array(target.get("scale", [1 / self._temperature]))
        self.levels: list[float] = target.get("levels", [])
        self._is_log = target.get("link") == "log"

    def encode(self, table: Any) -> Array:
        """Return a table in standard deviations, of shape (rows, encoded columns)."""
        return self._encoder.encode(table, Notes())

    def raw(self, encoded: Array) -> Array:
        """Return the weighted average of the networks, of shape (rows, outputs)."""
        return self._networks(encoded)

    def decision_function(self, table: Any) -> Array:
        """Return the logits of a classifier, or the predictions of a regressor, in two axes."""
        notes = Notes()
        outputs = self.outputs(table, notes)
        if notes.far:
            self._encoder.warn_far_outside(np.sum(notes.far, axis=0))
        if unknown := notes.unknown():
            warnings.warn(unknown, LossWarning, stacklevel=3)
        return outputs

    def outputs(self, table: Any, notes: Notes) -> Array:
        """Return the decision function, and note what there is to say about the rows."""
        raw = self.raw(self._encoder.encode(table, notes))
        return self._finished(self._center + raw * self._scale)

    def _finished(self, numbers: Array) -> Array:
        return finished(numbers, is_log=self._is_log, is_sorted=len(self.levels) > 1)

    def predict(self, table: Any) -> Array:
        """Return the most probable class of each row, or the predicted numbers."""
        outputs = self.decision_function(table)
        if self.classes is None:
            return outputs[:, 0] if self._one_target else outputs
        return np.array(self.classes)[class_numbers(outputs)]

    def predict_proba(self, table: Any) -> Array:
        """Return the probabilities of the classes, of shape (rows, classes)."""
        if self.classes is None:
            raise ValueError("Only a classifier has probabilities. This model is a regressor.")
        return probabilities(self.decision_function(table))

    def certified_radius(self, table: Any, method: str = "global") -> Array:
        """Return how many standard deviations all numbers of a row can move while its class stays.

        They are those of the columns as the model scales them.

        Parameters
        ----------
        table : table
        method : {"global", "local"}
            "local" looks at the neighbourhood of each row: it proves more, and is slower.
        """
        if self.classes is None:
            raise ValueError(
                "Only a classifier has a radius. Use output_range() of this regressor."
            )
        x = self.encode(table)
        margins, asked = self._margins(self.raw(x))
        unit = self._encoder.movable(x)
        per_unit = self._moved(x, unit, asked, "global")
        # Where nothing moves the quotient is infinite, or undefined at a margin of zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            rough = np.nan_to_num(margins / per_unit).min(axis=1).clip(0.0, FARTHEST)
            slack = self._slack(x, rough[:, None] * unit, asked)
            radius = np.nan_to_num((margins - slack) / per_unit).min(axis=1).clip(0.0, FARTHEST)
        radius = radius * (1 - 1e-12)
        if _checked_method(method) == "local":
            radius = self._searched(x, unit, margins, asked, radius).clip(max=FARTHEST)
        reading_error = self._encoder.reading_errors.max(initial=0.0)
        size = np.abs(x).max(axis=1) + 1
        return np.asarray(np.maximum(radius - 16 * UNIT * (size + radius) - reading_error, 0.0))

    def is_robust(self, table: Any, delta: Any, method: str = "global") -> Array:
        """Return True for rows whose class provably stays when numbers move by at most delta.

        Parameters
        ----------
        table : table
        delta : float, or dict from column name to amount
            A number of standard deviations for all columns of numbers, as the model scales them;
            or amounts in the columns' own units (days for times).
        method : {"global", "local"}
            As in ``certified_radius``.
        """
        if self.classes is None:
            raise ValueError("Only a classifier has classes. Use output_range() of this regressor.")
        x = self.encode(table)
        radius = self._encoder.radius(x, delta)
        margins, asked = self._margins(self.raw(x))
        return self._holds(x, radius, margins, asked, _checked_method(method))

    def output_range(self, table: Any, delta: Any, method: str = "global") -> tuple[Array, Array]:
        """Return a range that holds every prediction when numbers move by at most delta.

        Parameters
        ----------
        table : table
        delta : float, or dict from column name to amount
            As in ``is_robust``.
        method : {"global", "local"}
            As in ``certified_radius``.
        """
        if self.classes is not None:
            raise ValueError("Only a regressor has ranges. Use is_robust() of this classifier.")
        x = self.encode(table)
        radius = self._encoder.radius(x, delta)
        outputs = self.raw(x)
        asked = _Asked.outputs(*outputs.shape)
        moved = self._moved(x, radius, asked, _checked_method(method))
        moved = moved + self._slack(x, radius, asked)
        middle = self._center + outputs * self._scale
        half = self._scale * moved * (1 + 1e-12) + 1e-15 * np.abs(middle) + 1e-322
        low, high = self._finished(middle - half), self._finished(middle + half)
        if self._is_log:  # exp is rounded, too
            low, high = low * (1 - 1e-14), high * (1 + 1e-14)
        return (low[:, 0], high[:, 0]) if self._one_target else (low, high)

    def _margins(self, outputs: Array) -> tuple[Array, _Asked]:
        """Return the margins of each row over the other classes, and how they come about."""
        n = outputs.shape[1]
        if n == 1:
            return np.abs(outputs), _Asked.outputs(*outputs.shape)
        asked = _Asked.pairs(outputs.argmax(axis=1), n)
        return np.einsum("rco,ro->rc", asked.combinations, outputs), asked

    def _moved(self, x: Array, radius: Array, asked: _Asked, method: str) -> Array:
        """Return how far combinations of outputs can move within a radius, in exact arithmetic."""
        everywhere = _inflated(radius @ self._moves.T, x.shape[1])
        moved = np.take_along_axis(everywhere, asked.places, axis=1)
        if method == "local":
            for k in range(0, len(x), NEAR_BLOCK):
                own = slice(k, k + NEAR_BLOCK)
                near = self._moved_nearby(x[own], radius[own], asked.combinations[own])
                moved[own] = np.minimum(moved[own], near)
        return moved

    def _moved_nearby(self, x: Array, radius: Array, combinations: Array) -> Array:
        """Return the same by what can be in use near each row: the local bound."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows excludes nothing
            boxes = [view.box(x, radius) for view in self._views]
            total = np.zeros(combinations.shape[:2])
            for part in self._parts:
                total += part.moved(boxes[part.view], combinations)
            return np.nan_to_num(_inflated(total, self._members + 2), nan=np.inf, posinf=np.inf)

    def _slack(self, x: Array, radius: Array, asked: _Asked) -> Array:
        """Return the rounding of two predictions, of shape (rows, combinations)."""
        size = np.abs(asked.combinations).sum(axis=2)
        return np.asarray(2 * self._rounding(x, radius.max(axis=1))[:, None] * size)

    def _holds(self, x: Array, radius: Array, margins: Array, asked: _Asked, method: str) -> Array:
        """Return True for the rows whose margins no move within a radius can use up."""
        moved = self._moved(x, radius, asked, method) + self._slack(x, radius, asked)
        return np.asarray((moved < margins).all(axis=1))

    def _searched(self, x: Array, unit: Array, margins: Array, asked: _Asked, low: Array) -> Array:
        """Return the largest radius, at least a given one, found by doubling and halving."""

        def holds(trial: Array) -> Array:
            return self._holds(x, unit * trial[:, None], margins, asked, "local")

        least, high, growing = low, 2 * low, low > 0
        for _ in range(DOUBLINGS):
            growing = growing & holds(high)
            if not growing.any():
                break
            low = np.where(growing, high, low)
            high = np.where(growing, 2 * high, high)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            good = holds(middle)
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        return np.maximum(low, least)

    def _rounding(self, x: Array, radius: Array) -> Array:
        """Return by how much computed outputs can differ from exact ones, per row."""
        sizes = [view.sizes(x, radius) for view in self._views]
        errors = [part.rounding(*sizes[part.view], self._members) for part in self._parts]
        return np.asarray(2 * np.sum(errors, axis=0))


def read_export(folder: Any) -> tuple[dict[str, Any], bytes]:
    """Return the manifest of an exported model, and the weights that it belongs to."""
    facts = Path(folder) / "manifest.json"
    if not facts.is_file():
        raise FileNotFoundError(f"There is no exported model in {str(folder)!r}.")
    manifest = json.loads(facts.read_text(encoding="utf-8"))
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"This file reads exports of format {FORMAT}. The folder {str(folder)!r} has "
            f"format {manifest.get('format')!r}: use the predictor.py beside it."
        )
    for path in (Path(folder) / name for name in WEIGHTS):
        weights = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(weights).hexdigest() == manifest["weights"]:
            return manifest, weights
    raise ValueError(
        "The weights.npz beside a manifest.json must be of the same export. That in "
        f"{str(folder)!r} is missing, damaged or another: copy the whole folder, or export again."
    )


class Networks:
    """The weighted average of the networks, from the arrays of an export."""

    def __init__(self, views: list[str], parts: list[dict[str, Any]], arrays: Any) -> None:
        self.views = [_View(v, bend, arrays) for v, bend in enumerate(views)]
        self.parts = [_Part(p, arrays, **part) for p, part in enumerate(parts)]

    def __call__(self, encoded: Array) -> Array:
        """Map (rows, encoded columns) to (rows, outputs), by blocks that fit into caches."""
        starts = range(0, max(1, len(encoded)), BLOCK)
        return np.concatenate([self._of_block(encoded[k : k + BLOCK]) for k in starts])

    def _of_block(self, encoded: Array) -> Array:
        seen = [view.see(encoded) for view in self.views]
        first, *others = [part.forward(seen[part.view]) for part in self.parts]
        return sum(others, start=first)


class _View:
    """What networks see of encoded columns z: ``h((z - center) / scale) - h(-center / scale)``."""

    def __init__(self, number: int, bend: str, arrays: Any) -> None:
        self.bend, name = bend, f"view.{number}"
        if bend != "identity":
            self.inputs, self.bent = arrays[f"{name}.inputs"], arrays[f"{name}.bent"]
            self.center, self.scale = arrays[f"{name}.center"], arrays[f"{name}.scale"]
            self.zero = self._bent(-self.center / self.scale)

    def see(self, x: Array) -> Array:
        """Map (rows, encoded columns) to (rows, seen columns)."""
        if self.bend == "identity":
            return x
        z = x[:, self.inputs]
        mapped = self._bent((z - self.center) / self.scale) - self.zero
        return np.where(self.bent, mapped, z)

    def _bent(self, u: Array) -> Array:
        """Return h of the class: increasing, and nowhere steeper than 1."""
        if self.bend == "log_tails":
            return np.asarray(BEND * np.arcsinh(u / BEND))
        return np.asarray(u / np.hypot(1.0, u / BEND))

    def sizes(self, x: Array, radius: Array) -> tuple[Array, Array]:
        """Return how large what is seen can be within a radius of each row, and its rounding."""
        if self.bend == "identity":
            size = np.abs(x).max(axis=1) + radius
            return size, np.zeros_like(size)
        size = np.abs(self.see(x)).max(axis=1) + radius / self.scale.min() * (1 + 4 * UNIT)
        # Of u, of h(u) and of h at the center: h is off in no larger proportion than u is.
        error = 32 * UNIT * (size + 2 * np.abs(self.zero).max())
        return size + error, error

    def box(self, x: Array, radius: Array) -> tuple[Array, Array, Array]:
        """Return what is seen of a box around rows: its middle, its radius, and their rounding.

        The map is increasing, so a box passes through it by its ends, rounded outward.
        """
        if self.bend == "identity":
            return x, radius, np.zeros_like(x)
        z, radius = x[:, self.inputs], radius[:, self.inputs]
        spread = radius + (np.abs(z) + radius) * _gamma(3) + LOST
        low, here, high = (
            self._bent((v - self.center) / self.scale) - self.zero
            for v in (z - spread, z, z + spread)
        )
        farther = np.maximum(np.abs(low), np.abs(high)) + 2 * np.abs(self.zero)
        rounding = np.where(self.bent, 16 * UNIT * farther + LOST, 0.0)
        moved = np.maximum(high - here, here - low) + 2 * rounding
        steepest = _inflated(radius / self.scale, 2) + LOST * np.sign(radius)
        moved = np.where(self.bent, np.minimum(moved, steepest), radius)
        return np.where(self.bent, here, z), moved, rounding


class _Part:
    """Networks of one shape: ``x -> sum_t W_t phi_t(h) + b``, layer after layer."""

    def __init__(
        self, number: int, arrays: Any, view: int, splits: list[str], weight: list[float]
    ) -> None:
        self.view, self.weight = view, np.array(weight)
        self.inputs = arrays[f"{number}.inputs"]  # the seen columns that are read
        self.layers = []
        width = len(self.inputs)
        for k, split in enumerate(splits):
            name = f"{number}.{k}"
            bias, edges = (arrays.get(f"{name}.{word}") for word in ("bias", "edges"))
            pieces = 2 if split == "crelu" else 1 if edges is None else edges.shape[1] + 1
            matrix = _dense((bias.size, pieces * width), name, arrays)
            matrix = matrix.reshape(*bias.shape, -1).transpose(0, 2, 1)  # (members, in, out)
            knots = None if edges is None else _Knots(edges.astype(float))
            bias = bias[:, None].astype(float)
            self.layers.append((split, np.ascontiguousarray(matrix), bias, knots))
            width = bias.shape[-1]

    def forward(self, x: Array) -> Array:
        """Map (rows, seen columns) to the share in the average, (rows, outputs)."""
        h = (x[:, self.inputs] if len(self.inputs) < x.shape[1] else x)[None]
        for split, weight, bias, knots in self.layers:
            if split == "relu":
                h = np.maximum(h, 0.0, out=h)  # never the first layer: h is our own
            elif split == "crelu":
                h = np.concatenate([np.maximum(h, 0.0), np.minimum(h, 0.0)], axis=2)
            elif knots is not None:
                h = knots.split(h)
            h = h @ weight  # (members, rows, out)
            h += bias  # in place: another array of this size costs as much as a small product
        share: Array = self.weight @ h.reshape(len(h), -1)
        return share.reshape(h.shape[1:])

    def rounding(self, size: Array, error: Array, members: int) -> Array:
        """Return a bound on the rounding of the share, for inputs of a size and an error."""
        for _, weight, bias, _ in self.layers:
            most = np.abs(weight).sum(axis=1).max(axis=1)[:, None]  # (members, 1)
            b = np.abs(bias).max(axis=2)
            g = _gamma(weight.shape[1] + 3)
            error = (1 + g) * most * error + g * (most * size + b)
            size = (most * size + b) * (1 + g) + error
        return np.asarray(self.weight @ (error + size * (members + 3) * UNIT))

    def moved(self, box: tuple[Array, Array, Array], combinations: Array) -> Array:
        """Return how far combinations of the share in the average can move within boxes.

        Maps boxes of what is seen, each of shape (rows, seen columns), and combinations of
        shape (rows, combinations, outputs) to (rows, combinations).
        """
        x, radius, rounding = (side[:, self.inputs] for side in box)
        total = np.zeros(combinations.shape[:2])
        for member, weight in enumerate(_lifted(np.abs(self.weight))):
            layers = [_Layer(member, *layer) for layer in self.layers]
            live = _live_pieces(layers, x, radius + rounding)
            total += weight * _moved_through(layers, live, combinations, radius) + LOST
        return total


class _Layer:
    """A layer of one network, for the local bound.

    Boxes are held by their low and high ends, of shape (rows, in). What is live says which pieces
    of its inputs can move in a box, and has the shape (rows, pieces, in).
    """

    def __init__(
        self, member: int, split: str, weight: Array, bias: Array, knots: _Knots | None
    ) -> None:
        self.split, self.bias = split, bias[member, 0]
        self.flat = weight[member].T  # (out, pieces * in)
        own = 0 if knots is None else min(member, len(knots.lower) - 1)  # one set may be for all
        self.edges = (
            None if knots is None else (knots.lower[own], knots.upper[own], knots.zero[own])
        )
        pieces = 2 if split == "crelu" else 1 if knots is None else knots.lower.shape[2]
        self.weight = self.flat.reshape(len(self.flat), pieces, -1)  # (out, pieces, in)

    def pieces(self, h: Array) -> Array:
        """Map (rows, in) to (rows, pieces, in)."""
        if self.split == "relu":
            return np.maximum(h, 0.0)[:, None]
        if self.split == "crelu":
            return np.stack([np.maximum(h, 0.0), np.minimum(h, 0.0)], axis=1)
        if self.edges is not None:
            lower, upper, zero = self.edges  # each of shape (1, pieces, in)
            return np.asarray(np.clip(h[:, None], lower, upper) - zero)
        return h[:, None]

    def ends(self, bottom: Array, top: Array) -> tuple[Array, Array]:
        """Return the least and the largest outputs, widened by the rounding of the sums."""
        middle = ((top + bottom) / 2).reshape(len(top), -1)
        half = ((top - bottom) / 2).reshape(len(top), -1)
        g = _gamma(self.flat.shape[1] + 6)
        spread = (1 + g) * ((half + g * np.abs(middle)) @ np.abs(self.flat).T)
        return _ends(middle @ self.flat.T + self.bias, spread + g * np.abs(self.bias) + LOST)

    def through(self, mass: Array, live: Array | None) -> Array:
        """Map the mass of outputs to that of inputs: (rows, combinations, out) to (.., in)."""
        size = np.abs(self.weight)
        if live is None:
            return np.asarray(mass @ size[:, 0])
        ways = [(mass @ size[:, t]) * live[:, None, t] for t in range(size.shape[1])]
        single = np.sum(ways, axis=0)
        if size.shape[1] == 1:
            return np.asarray(single)
        alone = live.sum(axis=1) <= 1  # else several pieces of a coordinate can move
        return np.asarray(np.where(alone[:, None], single, mass @ size.max(axis=1)))


def _live_pieces(layers: list[_Layer], x: Array, radius: Array) -> list[Array | None]:
    """Return what is live in each layer when inputs move within a radius of each row."""
    low, high = _ends(x, radius + (np.abs(x) + radius) * _gamma(3) + LOST)
    live = []
    for layer in layers:
        bottom, top = layer.pieces(low), layer.pieces(high)
        live.append(None if layer.split == "none" else top > bottom)
        low, high = layer.ends(bottom, top)
    return live


def _ends(center: Array, spread: Array) -> tuple[Array, Array]:
    """Return both ends of intervals; one that overflowed excludes nothing."""
    low, high = center - spread, center + spread
    low[~np.isfinite(low)], high[~np.isfinite(high)] = -np.inf, np.inf
    return low, high


def _moved_through(
    layers: list[_Layer], live: list[Array | None], combinations: Array, radius: Array
) -> Array:
    """Push combinations of outputs down to the inputs, through live pieces only."""
    *lower, last = layers
    n = combinations.shape[2]
    # Terms of the last layer may cancel: the rounding of their sums is measured by their sizes.
    terms = _lifted(np.abs(combinations)) @ _lifted(np.abs(last.flat))
    size = _inflated(np.abs(combinations @ last.flat) + _gamma(n) * terms, n)
    size = size.reshape(*size.shape[:2], *last.weight.shape[1:])
    mass = (size if live[-1] is None else size * live[-1][:, None]).max(axis=2)
    lost = 0.0  # of any mass, by underflow
    for layer, own in zip(reversed(lower), reversed(live[:-1]), strict=True):
        mass = _inflated(layer.through(mass, own), len(layer.weight))
        lost = 2 * lost * float(np.abs(layer.weight).max(axis=1).sum(axis=0).max()) + LOST
    moves = _inflated((mass * radius[:, None]).sum(axis=2), radius.shape[1])
    return np.asarray(moves + 2 * (lost * radius.sum(axis=1)[:, None] + LOST))


class _Asked(NamedTuple):
    """Which combinations of outputs a proof is about, for each row.

    ``places`` has the shape (rows, combinations) and points into the moves of the export;
    ``combinations`` has the shape (rows, combinations, outputs).
    """

    places: Array
    combinations: Array

    @classmethod
    def outputs(cls, rows: int, n: int) -> _Asked:
        """Return every output by itself."""
        places = np.broadcast_to(np.arange(n), (rows, n))
        return cls(places, np.broadcast_to(np.eye(n), (rows, n, n)))

    @classmethod
    def pairs(cls, chosen: Array, n: int) -> _Asked:
        """Return the differences between the output of each row's class and all others."""
        # Pair number of classes a < b, in the order of the export.
        pair = np.zeros((n, n), dtype=int)
        pair[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
        pair = pair + pair.T
        others = np.array([[b for b in range(n) if b != a] for a in range(n)])[chosen]
        eye = np.eye(n)
        return cls(pair[chosen[:, None], others], eye[chosen][:, None] - eye[others])


class _Encoder:
    """The columns of a table as numbers."""

    def __init__(self, names: list[str], kinds: list[str], codes: list[dict[str, Any]]) -> None:
        self.names, self.kinds, self.codes = names, kinds, codes
        widths = [_width(code) for code in codes]
        self.first = np.concatenate([[0], np.cumsum(widths)]).astype(int)
        used = [k for k, code in enumerate(codes) if code.get("scale", 0) > 0]
        self.scaled = np.array(used, dtype=int)  # columns of numbers that vary
        self.center = np.array([codes[k]["center"] for k in used])
        self.scale = np.array([codes[k]["scale"] for k in used])
        low, high = (np.array([codes[k][name] for k in used]) for name in ("low", "high"))
        with np.errstate(over="ignore"):  # farther out, predictions are guesses
            self.lowest, self.highest = low - (high - low), high + (high - low)
            self.near = (
                float(((self.lowest - self.center) / self.scale).max(initial=-FAR)),
                float(((self.highest - self.center) / self.scale).min(initial=FAR)),
            )
        # How far reading a cell can move it: large numbers are rounded, times cut to milliseconds.
        cut = np.array([1 / DAY if kinds[k] in DAYS else 0.0 for k in used])
        self.reading_errors = (8 * UNIT * np.abs(self.center) + cut) / self.scale
        numbers = [k for k, code in enumerate(codes) if "center" in code]
        self.marked = [k for k in numbers if codes[k]["has_missing"]]
        self.plain = len(used) == len(codes) and not self.marked  # all numbers, none ever missing

    def encode(self, table: Any, notes: Notes) -> Array:
        """Return the encoded rows, and note what there is to say about them."""
        if isinstance(table, np.ma.MaskedArray):
            nothing: Any = None
            table = np.where(np.ma.getmaskarray(table), nothing, table.data)
        if isinstance(table, np.ndarray) and table.dtype.kind in "fiu" and table.ndim == 2:
            self._check_count(table.shape[1])
            if self.plain:
                return self._numbers(np.asarray(table, dtype=float), notes.far)
        columns = self._columns(table)
        used = np.flatnonzero(np.diff(self.first)).tolist()  # the others may hold anything
        read = {k: self._read(k, columns[k]) for k in used}
        out = np.zeros((len(columns[0]), self.first[-1]))
        if len(self.scaled):
            values = np.stack([read[k] for k in self.scaled], axis=1)
            out[:, self.first[self.scaled]] = self._numbers(values, notes.far)
        for k in self.marked:
            out[:, self.first[k + 1] - 1] = np.isnan(read[k])
        for k in used:
            if self.kinds[k] == "category":
                out[:, self.first[k] : self.first[k + 1]] = _one_hot(self.codes[k], read[k])
                notes.add(self.names[k], read[k], self.codes[k])
        return out

    def _read(self, k: int, cells: Any) -> Array:
        if self.kinds[k] == "category":
            return _words(self.names[k], cells, self.codes[k]["levels"])
        readers = {"time": _days, "duration": _spans, "number": _floats}
        return readers[self.kinds[k]](self.names[k], cells)

    def _numbers(self, values: Array, far: list[Array]) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            z: Array = values - self.center
            z /= self.scale
            usual = bool(z.min(initial=0.0) >= self.near[0] and z.max(initial=0.0) <= self.near[1])
        if not usual:  # missing, infinite or far away
            self._check_finite(values)
            with np.errstate(invalid="ignore"):
                outside = (values < self.lowest) | (values > self.highest)
            if outside.any():
                far.append(outside.sum(axis=0))
            if np.isinf(z).any():  # the difference of the halves does not overflow
                with np.errstate(over="ignore", invalid="ignore"):
                    halves = (values / 2 - self.center / 2) / (self.scale / 2)
                z = np.where(np.isinf(z), halves, z)
            np.clip(z, -FAR, FAR, out=z)
            z[np.isnan(z)] = 0.0
        return z

    def _check_finite(self, values: Array) -> None:
        for k, column in zip(self.scaled, values.T, strict=True):
            if np.isinf(column).any():
                raise ValueError(
                    f"Numbers must be finite or missing. Column {self.names[k]!r} contains "
                    f"infinity in row {int(np.isinf(column).argmax())}. Replace it by a number or "
                    "by NaN, which counts as missing."
                )

    def warn_far_outside(self, far: Array) -> None:
        """Warn as the model does, and name the columns."""
        counts = [(self.names[k], n) for k, n in zip(self.scaled, far, strict=True) if n]
        said = ", ".join(f"{name!r} ({count} rows)" for name, count in counts[:5])
        warnings.warn(
            "Some rows lie farther outside the range of the training rows than that range is "
            f"wide, and predictions for them are guesses. Columns: {said}.",
            OutOfRangeWarning,
            stacklevel=4,
        )

    def movable(self, x: Array) -> Array:
        """Return 1 for numbers that are not missing, and 0 for all else."""
        unit = np.zeros_like(x)
        unit[:, self.first[self.scaled]] = 1.0
        for k in set(self.marked) & set(self.scaled.tolist()):
            unit[:, self.first[k]] = 1.0 - x[:, self.first[k + 1] - 1]
        return unit

    def radius(self, x: Array, delta: Any) -> Array:
        """Return how far each encoded column may move, for amounts in the user's units."""
        if isinstance(delta, dict):
            movable = [n for k, n in enumerate(self.names) if self.kinds[k] != "category"]
            if unknown := [name for name in delta if name not in movable]:
                raise ValueError(
                    "The names in 'delta' must be columns of numbers or times. These are not: "
                    f"{unknown}."
                )
            own = [(self.names[k], self.kinds[k]) for k in self.scaled]
            amounts = np.array(
                [_amount(delta.get(n, 0.0), f"column {n!r}", kind) for n, kind in own]
            )
        else:
            amounts = _amount(delta, "all columns, in standard deviations,", "number") * self.scale
        at = self.first[self.scaled]
        move = np.minimum(amounts * (1 / self.scale), 2 * FAR)  # encoded numbers lie within FAR
        radius = self.movable(x)
        rounding = 8 * UNIT * (np.abs(x[:, at]) + 2 * move + 1) + self.reading_errors
        radius[:, at] *= (move + rounding) * (amounts > 0)
        return radius

    def _check_count(self, count: int) -> None:
        if count != len(self.names):
            raise ValueError(
                f"A table without names must have the {len(self.names)} columns of the model, in "
                f"its order. Got {count}."
            )

    def _unnamed(self, table: Any) -> list[Any]:
        """Return the columns of a table without names, which are in the order of the model."""
        cells = np.array(table, dtype=object) if isinstance(table, (list, tuple)) else table
        if np.ndim(cells) > 0 and len(cells) == 0:
            raise ValueError(NO_ROWS)
        if getattr(cells, "ndim", 0) != 2:
            raise ValueError(
                "A table must be a frame, a dict of columns, or an array or list of rows of "
                f"equal length. Got one of type {type(table).__name__}. Fill missing cells "
                "with None."
            )
        self._check_count(cells.shape[1])
        return list(cells.T)

    def _columns(self, table: Any) -> list[Any]:
        """Return the columns of a table in the order of the model."""
        if isinstance(table, (list, tuple)) and table and isinstance(table[0], dict):
            table = {n: [row.get(n) for row in table] for n in {n for row in table for n in row}}
        # Of the type: a frame has its columns as attributes, whatever they are called.
        if hasattr(type(table), "collect"):
            raise TypeError(
                f"The table must be in memory. Got a lazy {type(table).__name__}: call its "
                "collect()."
            )
        named = next((a for a in ("column_names", "columns") if hasattr(type(table), a)), None)
        have = table if isinstance(table, dict) else getattr(table, named) if named else None
        if have is None:
            return self._unnamed(table)
        if isinstance(table, dict) and any(not _is_list(cells) for cells in table.values()):
            raise ValueError("A dict must hold a list of cells per column. Put one row in a list.")
        keys = {str(name): name for name in have}
        if missing := [name for name in self.names if name not in keys]:
            raise ValueError(f"The table must have all columns of the model. Missing: {missing}.")
        names = [str(name) for name in have] if len(keys) < len(have) else []
        if twice := [name for name in self.names if names.count(name) > 1]:
            raise ValueError(
                f"Column names must be unique. These occur more than once: {twice}. Rename them."
            )
        columns = [table[keys[name]] for name in self.names]
        sizes = {len(cells) for cells in columns}
        if len(sizes) > 1:
            raise ValueError(
                f"All columns must have as many cells. Got {min(sizes)} to {max(sizes)}: fill "
                "missing cells with None."
            )
        if sizes == {0}:
            raise ValueError(NO_ROWS)
        return columns


def finished(numbers: Array, *, is_log: bool, is_sorted: bool) -> Array:
    """Return predictions: means from their logarithms, or several quantiles in order."""
    if is_log:
        return np.asarray(np.exp(np.minimum(numbers, LARGEST_LOG)))
    return np.sort(numbers, axis=1) if is_sorted else np.asarray(numbers)


def probabilities(logits: Array) -> Array:
    """Return the probabilities of the classes; the first of two classes has the logit 0."""
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def class_numbers(outputs: Array) -> Array:
    """Return the number of the most probable class of each row."""
    return (outputs[:, 0] > 0).astype(int) if outputs.shape[1] == 1 else outputs.argmax(axis=1)


def _gamma(n: int) -> float:
    return 2 * n * UNIT / (1 - n * UNIT)


def _inflated(total: Array, n: int) -> Array:
    return total * (1 + _gamma(n))


def _lifted(size: Array) -> Array:
    """Return non-negative numbers, those above zero raised so that no product of two is lost."""
    return np.asarray(size + LEAST * np.sign(size))


def _checked_method(method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"The 'method' must be one of {METHODS}. Got {method!r} instead.")
    return method


def _dense(shape: tuple[int, int], name: str, arrays: Any) -> Array:
    """Return the matrix of a layer in float64, from its dense or its sparse form."""
    if name in arrays:
        return np.asarray(arrays[name], dtype=float)
    weight = np.zeros(shape)
    rows = np.repeat(np.arange(shape[0]), arrays[f"{name}.counts"].astype(int))
    weight[rows, arrays[f"{name}.columns"].astype(int)] = arrays[f"{name}.values"]
    return weight


class _Knots:
    """Splits each column at its edges into pieces that vanish at 0 and sum to the column."""

    def __init__(self, edges: Array) -> None:
        ends = np.full((len(edges), 1, edges.shape[2]), np.inf)
        self.lower = np.concatenate([-ends, edges], axis=1)[:, None]  # (members, 1, pieces, in)
        self.upper = np.concatenate([edges, ends], axis=1)[:, None]
        self.zero = np.clip(0.0, self.lower, self.upper)

    def split(self, h: Array) -> Array:
        """Map (1, rows, in) to (members, rows, pieces * in)."""
        pieces = np.maximum(h[:, :, None], self.lower)
        np.minimum(pieces, self.upper, out=pieces)
        pieces -= self.zero
        return np.asarray(pieces.reshape(*pieces.shape[:2], -1))


def _width(code: dict[str, Any]) -> int:
    if "center" in code:
        return int(code["scale"] > 0) + int(code["has_missing"])
    states = len(code["levels"]) + code["has_rare"] + code["has_missing"]
    return states - 1 if _is_sign(code) else (0 if states < 2 else states)


def _is_sign(code: dict[str, Any]) -> bool:
    unmarked = code.get("is_ordered", False) or not code["has_missing"]
    return len(code["levels"]) == 2 and not code["has_rare"] and unmarked


def _one_hot(code: dict[str, Any], words: Array) -> Array:
    number = {level: k for k, level in enumerate(code["levels"])}
    rare = len(number) if code["has_rare"] else -1
    missing = len(number) + code["has_rare"] if code["has_missing"] else -1
    state = np.array([missing if w is None else number.get(w, rare) for w in words], dtype=int)
    if _is_sign(code):
        sign = np.where((state == 0) | (state == 1), 2.0 * state - 1.0, 0.0)
        return np.stack([sign, state == missing], axis=1)[:, : _width(code)]
    return np.asarray(state[:, None] == np.arange(_width(code)), dtype=float)


def _is_list(cells: Any) -> bool:
    return isinstance(cells, (list, tuple)) or np.ndim(cells) > 0


def _cells(cells: Any, dtype: Any = None) -> Array:
    """Return cells as an array of one axis, whatever they hold."""
    kind: Any = getattr(cells, "type", None)
    if hasattr(kind, "index_type"):  # a dictionary of Arrow: NumPy gets a level for missing cells
        cells = cells.cast(kind.value_type)
    try:
        values = np.asarray(cells, dtype=dtype)
    except ValueError:  # some are lists, of uneven lengths
        values = np.empty((0, 0))
    if values.ndim == 1 and values.dtype.kind not in "US":
        return values
    values = np.empty(len(cells), dtype=object)
    for k, cell in enumerate(cells):
        values[k] = cell
    return values


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, (float, np.floating)):
        return math.isnan(cell)
    return type(cell).__name__ in ("NoneType", "NAType", "NaTType")


def _floats(name: str, cells: Any) -> Array:
    values = _cells(cells)
    if values.dtype.kind in "fiu":
        return values.astype(float)
    given = list(values) if values.dtype.kind in "mM" else values.tolist()  # else they were numbers
    return np.array([_as_float(name, cell) for cell in given], dtype=float)


def _as_float(name: str, cell: Any) -> float:
    if _is_missing(cell):
        return math.nan
    usual = isinstance(cell, (numbers.Real, decimal.Decimal))
    if usual and not isinstance(cell, (*BOOLS, *SPANS)):
        try:
            return float(cell)
        except OverflowError:  # a whole number of more than 300 digits
            return math.inf
    raise ValueError(f"Column {name!r} must hold numbers, as in training. Got {cell!r}.")


def _days(name: str, cells: Any) -> Array:
    """Return moments as days since 1970."""
    values = _cells(cells)
    if values.dtype.kind != "M":
        moments = [None if _is_missing(c) else _naive(name, c) for c in values.tolist()]
        values = np.array(moments, dtype="datetime64[ms]")
    return _in_days(values.astype("datetime64[ms]"))


def _spans(name: str, cells: Any) -> Array:
    """Return durations as days."""
    values = _cells(cells)
    if values.dtype.kind != "m":
        spans = [None if _is_missing(cell) else cell for cell in values.tolist()]
        strange = [c for c in spans if not (c is None or isinstance(c, SPANS))]
        if strange:
            raise ValueError(
                f"Column {name!r} must hold durations, as in training. Got {strange[0]!r}."
            )
        values = np.array(spans, dtype="timedelta64[ms]")
    return _in_days(values.astype("timedelta64[ms]"))


def _naive(name: str, cell: Any) -> Any:
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        # In UTC the year can be 10000, which Python does not know.
        return np.datetime64(cell.replace(tzinfo=None)) - np.timedelta64(cell.utcoffset())
    if isinstance(cell, (datetime.date, np.datetime64)):
        return cell
    raise ValueError(f"Column {name!r} must hold dates, as in training. Got {cell!r}.")


def _in_days(values: Array) -> Array:
    return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(float) / DAY)


def _words(name: str, cells: Any, levels: list[str]) -> Array:
    values = _cells(cells, dtype=object)
    if strange := [cell for cell in values.tolist() if isinstance(cell, (list, dict))]:
        raise ValueError(f"Column {name!r} must hold words, as in training. Got {strange[0]!r}.")
    words = np.empty(len(values), dtype=object)
    words[:] = [None if _is_missing(cell) else _word(cell) for cell in values.tolist()]
    if not any(word in levels for word in words):  # 0 and 1 are not False and True
        there = [cell for cell in values.tolist() if not _is_missing(cell)]
        if there and all(isinstance(c, NO_WORDS) and not isinstance(c, BOOLS) for c in there):
            raise ValueError(f"Column {name!r} must hold words, as in training. Got {there[0]!r}.")
    return words


def _word(cell: Any) -> str:
    if isinstance(cell, bytes):
        return cell.decode()
    whole = isinstance(cell, (float, np.floating)) and float(cell).is_integer()
    return str(int(cell)) if whole else str(cell)


def _amount(delta: Any, of: str, kind: str) -> float:
    if hasattr(delta, "to_timedelta64"):  # NumPy's own conversion drops nanoseconds
        delta = delta.to_timedelta64()
    if isinstance(delta, SPANS) and kind in DAYS:
        span = np.timedelta64(delta)
        if np.datetime_data(span)[0] not in "YM":  # which have no length of their own
            delta = float(span / np.timedelta64(1, "D"))
    usual = isinstance(delta, numbers.Real) and not isinstance(delta, (*BOOLS, *SPANS))
    if usual and float(delta) >= 0 and math.isfinite(delta):
        return float(delta)
    raise ValueError(
        f"The 'delta' of {of} must be a number of at least 0, or a timedelta if it holds times or "
        f"durations. Got {delta!r}."
    )
