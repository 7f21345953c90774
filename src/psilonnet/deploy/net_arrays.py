"""The networks of a model file as NumPy arrays. Nothing in the file is trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.deploy.model_file import check_file

if TYPE_CHECKING:
    from collections.abc import Mapping

Array = np.ndarray[Any, Any]

SPLITS = {"none": 1, "relu": 1, "crelu": 2}  # with their pieces; knots have as many as they like
FIRST, LATER = ("none", "knots"), ("relu", "crelu")
BENDS = ("identity", "log_tails", "clipped")
FACTS = ["bend", "bent", "splits", "weight"]
OFF = 1e-9  # by so much the sum of the weights may differ from 1


@dataclass(frozen=True)
class LayerArrays:
    """A layer as in :class:`psilonnet.nn.PlainLayer`, in float32."""

    split: str
    weight: Array  # (members, out, pieces, in)
    bias: Array  # (members, out)
    edges: Array | None  # (members, pieces - 1, in)


@dataclass(frozen=True)
class PartArrays:
    """Networks of one shape and how they see the columns, as in :class:`psilonnet.nn.Part`."""

    layers: list[LayerArrays]
    weight: Array  # (members,)
    inputs: Array  # (in,)
    bend: str
    bent: Array  # (in,), bool
    center: Array
    scale: Array
    increasing: Array | None = None  # (members, pieces, in)

    def summands(self) -> list[PartArrays]:
        """Return parts without a term that sum to this one, as those of :class:`Part`."""
        if self.increasing is None:
            return [self]
        first, weight = self.layers[0], self.increasing[:, None]
        zero = np.zeros((len(weight), 1), dtype=weight.dtype)
        term = LayerArrays(first.split, weight, zero, first.edges)
        return [replace(self, layers=own, increasing=None) for own in (self.layers, [term])]


def read_parts(
    facts: Any, arrays: Mapping[str, Array], *, numbers: Array, outputs: int
) -> list[PartArrays]:
    """Return the networks of a file.

    Sizes come from the arrays, so none is larger than the file.

    Parameters
    ----------
    facts : list of dict
        What :func:`psilonnet.deploy.net_to_tensors` returned, from a file.
    arrays : mapping
    numbers : ndarray of bool of shape (encoded columns,)
        Which of the encoded columns hold numbers: only these can be bent.
    outputs : int

    Raises
    ------
    ModelFileError
        If they do not describe such networks.
    """
    for name, array in arrays.items():  # one that is empty declares sizes at no cost
        check_file(array.size > 0, f"{name!r} is empty")
        check_file(bool(np.isfinite(array).all()), f"{name!r} is not finite")
    check_file(isinstance(facts, list) and len(facts) > 0, "there are no networks")
    left = dict(arrays)
    parts = [_read_part(p, fact, left, numbers) for p, fact in enumerate(facts)]
    check_file(not left, f"nothing is known of the tensors {sorted(left)[:3]}")
    ends = {part.layers[-1].weight.shape[1] for part in parts}
    check_file(ends == {outputs}, "the last layers do not have the outputs of the target")
    total = math.fsum(float(w) for part in parts for w in part.weight)
    check_file(abs(total - 1) <= OFF, "the weights of the networks do not sum to 1")
    return parts


def _read_part(p: int, fact: Any, left: dict[str, Array], numbers: Array) -> PartArrays:
    check_file(isinstance(fact, dict) and sorted(fact) == FACTS, f"part {p} is not described")
    inputs = _taken(left, f"{p}.inputs", "int64", 1)
    in_range = int(inputs[0]) >= 0 and int(inputs[-1]) < len(numbers)
    check_file(in_range and bool((np.diff(inputs) > 0).all()), "the inputs are not sorted columns")
    splits, weight = fact["splits"], _read_weight(fact["weight"])
    known = isinstance(splits, list) and len(splits) >= 2 and splits[0] in FIRST
    check_file(known and all(split in LATER for split in splits[1:]), "the layers are unknown")
    layers, size = [], len(inputs)
    for k, split in enumerate(splits):
        layers.append(_read_layer(f"{p}.{k}", split, left, (len(weight), size)))
        size = layers[-1].weight.shape[1]
    term = None
    if f"{p}.increasing" in left:
        term = _taken(left, f"{p}.increasing", "float32", 3)
        members, _, *pieces = layers[0].weight.shape
        check_file(list(term.shape) == [members, *pieces], "what is added has another shape")
        check_file(size == 1, "something is added to several outputs")
    return PartArrays(layers, weight, inputs, *_read_map(p, fact, left, numbers[inputs]), term)


def _read_layer(
    name: str, split: str, left: dict[str, Array], sizes: tuple[int, int]
) -> LayerArrays:
    """Return a layer of so many members and inputs."""
    weight = _taken(left, f"{name}.weight", "float32", 4)
    members, n_out, pieces, n_in = weight.shape
    bias = _taken(left, f"{name}.bias", "float32", 2)
    check_file((members, n_in) == sizes, f"the sizes of layer {name!r} do not fit those before")
    check_file(bias.shape == (members, n_out), f"the biases of layer {name!r} are misshapen")
    edges = None
    if split == "knots":
        edges = _taken(left, f"{name}.edges", "float32", 3)
        check_file(edges.shape == (members, pieces - 1, n_in), "the knots are misshapen")
        check_file(not bool((np.diff(edges, axis=-2) < 0).any()), "the knots are not sorted")
    else:
        check_file(pieces == SPLITS[split], f"layer {name!r} has another number of pieces")
    return LayerArrays(split, weight, bias, edges)


def _read_map(
    p: int, fact: Any, left: dict[str, Array], numbers: Array
) -> tuple[str, Array, Array, Array]:
    center, scale = (_taken(left, f"{p}.{w}", "float64", 1) for w in ("center", "scale"))
    bend, flags = fact["bend"], fact["bent"]
    check_file(
        isinstance(bend, str) and bend in BENDS,
        f"a map of columns must be one of {BENDS}, not {bend!r}",
    )
    check_file(isinstance(flags, list) and all(type(b) is bool for b in flags), "no map of columns")
    bent = np.array(flags, dtype=bool)
    check_file(bent.shape == center.shape == scale.shape == numbers.shape, "a map is misshapen")
    check_file(not bool((bent & ~numbers).any()), "a column is bent that does not hold numbers")
    check_file(bool((scale > 0).all()), "a map must have scales above 0")
    moved = bent & (bend != "identity")
    plain = (center == 0) & (scale == 1)
    check_file(bool((moved | plain).all()), "a column is moved that is not bent")
    return bend, bent, center, scale


def _read_weight(shares: Any) -> Array:
    check_file(isinstance(shares, list) and len(shares) > 0, "a part has no networks")
    good = all(type(share) is float and 0 < share <= 1 + OFF for share in shares)
    check_file(good, "the weight of a network is not a number between 0 and 1")
    return np.array(shares, dtype=np.float64)


def _taken(left: dict[str, Array], name: str, dtype: str, axes: int) -> Array:
    check_file(name in left, f"there is no tensor {name!r}")
    array = left.pop(name)
    check_file((array.dtype.name, array.ndim) == (dtype, axes), f"{name!r} is misshapen")
    return array
