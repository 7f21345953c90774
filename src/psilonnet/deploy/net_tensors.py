"""A weighted average of networks as tensors and facts for a model file, and back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from psilonnet.deploy.model_file import check_file
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainLayer, PlainNet

if TYPE_CHECKING:
    from collections.abc import Mapping

SPLITS = {"none": 1, "relu": 1, "crelu": 2}  # with their pieces; knots have as many as they like
FIRST, LATER = ("none", "knots"), ("relu", "crelu")
FACTS = ["bend", "bent", "splits", "weight"]
OFF = 1e-9  # by so much the sum of the weights may differ from 1


def net_to_tensors(net: AveragedNet) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Return what the parts are, and their tensors: all numbers of layers in float32.

    Raises
    ------
    RuntimeError
        If a number is not one of float32: rounding it here would make another model of it.
    """
    facts = []
    tensors: dict[str, Tensor] = {}
    for p, part in enumerate(net.parts):
        tensors |= {  # copies: parts may share them, which a file cannot
            f"{p}.inputs": part.inputs.clone(),
            f"{p}.center": part.columns.center.clone(),
            f"{p}.scale": part.columns.scale.clone(),
        }
        for k, layer in enumerate(part.net.layers):
            own = {"weight": layer.weight, "bias": layer.bias, "edges": layer.edges}
            tensors |= {
                f"{p}.{k}.{name}": _narrow(f"{p}.{k}.{name}", tensor)
                for name, tensor in own.items()
                if tensor is not None
            }
        facts.append(
            {
                "bend": part.columns.bend,
                "bent": part.columns.bent.tolist(),
                "splits": [layer.split for layer in part.net.layers],
                "weight": part.weight.tolist(),
            }
        )
    return facts, tensors


def _narrow(name: str, tensor: Tensor) -> Tensor:
    narrow = tensor.float()
    if not narrow.double().equal(tensor):
        raise RuntimeError(
            f"The weights, biases and edges of a fitted model must be numbers of float32. {name!r} "
            "holds others: this is an error of psilonnet, please report it."
        )
    return narrow


def net_from_tensors(
    facts: Any, tensors: Mapping[str, Tensor], *, numbers: Tensor, outputs: int
) -> AveragedNet:
    """Return the networks of a file; nothing in it is trusted.

    Sizes come from the tensors, so none is larger than the file.

    Parameters
    ----------
    facts : list of dict
        What :func:`net_to_tensors` returned, from a file.
    tensors : mapping
    numbers : Tensor of bool of shape (encoded columns,)
        Which of the encoded columns hold numbers: only these can be bent.
    outputs : int

    Raises
    ------
    ModelFileError
        If they do not describe such networks.
    """
    for name, tensor in tensors.items():  # one that is empty declares sizes at no cost
        check_file(tensor.numel() > 0, f"{name!r} is empty")
        check_file(bool(tensor.isfinite().all()), f"{name!r} is not finite")
    check_file(isinstance(facts, list) and len(facts) > 0, "there are no networks")
    left = dict(tensors)
    parts = [_read_part(p, fact, left, numbers) for p, fact in enumerate(facts)]
    check_file(not left, f"nothing is known of the tensors {sorted(left)[:3]}")
    ends = {part.net.layers[-1].weight.shape[1] for part in parts}
    check_file(ends == {outputs}, "the last layers do not have the outputs of the target")
    total = math.fsum(float(w) for part in parts for w in part.weight)
    check_file(abs(total - 1) <= OFF, "the weights of the networks do not sum to 1")
    return AveragedNet(parts, len(numbers))


def _read_part(p: int, fact: Any, left: dict[str, Tensor], numbers: Tensor) -> Part:
    check_file(isinstance(fact, dict) and sorted(fact) == FACTS, f"part {p} is not described")
    inputs = _taken(left, f"{p}.inputs", torch.int64, 1)
    in_range = int(inputs[0]) >= 0 and int(inputs[-1]) < len(numbers)
    check_file(in_range and bool((inputs.diff() > 0).all()), "the inputs are not sorted columns")
    splits, weight = fact["splits"], _read_weight(fact["weight"])
    known = isinstance(splits, list) and len(splits) >= 2 and splits[0] in FIRST
    check_file(known and all(split in LATER for split in splits[1:]), "the layers are unknown")
    layers, size = [], len(inputs)
    for k, split in enumerate(splits):
        layers.append(_read_layer(f"{p}.{k}", split, left, (len(weight), size)))
        size = layers[-1].weight.shape[1]
    columns = _read_map(p, fact, left, numbers[inputs])
    return Part(PlainNet.of_layers(layers), weight, columns, inputs)


def _read_layer(
    name: str, split: str, left: dict[str, Tensor], sizes: tuple[int, int]
) -> PlainLayer:
    """Return a layer of so many members and inputs."""
    weight = _taken(left, f"{name}.weight", torch.float32, 4)
    members, n_out, pieces, n_in = weight.shape
    bias = _taken(left, f"{name}.bias", torch.float32, 2)
    check_file((members, n_in) == sizes, f"the sizes of layer {name!r} do not fit those before")
    check_file(bias.shape == (members, n_out), f"the biases of layer {name!r} are misshapen")
    edges = None
    if split == "knots":
        edges = _taken(left, f"{name}.edges", torch.float32, 3).double()
        check_file(edges.shape == (members, pieces - 1, n_in), "the knots are misshapen")
        check_file(not bool((edges.diff(dim=-2) < 0).any()), "the knots are not sorted")
    else:
        check_file(pieces == SPLITS[split], f"layer {name!r} has another number of pieces")
    return PlainLayer(weight.double(), bias.double(), split, edges)


def _read_map(p: int, fact: Any, left: dict[str, Tensor], numbers: Tensor) -> ColumnMap:
    center, scale = (_taken(left, f"{p}.{w}", torch.float64, 1) for w in ("center", "scale"))
    flags = fact["bent"]
    check_file(isinstance(flags, list) and all(type(b) is bool for b in flags), "no map of columns")
    bent = torch.tensor(flags, dtype=torch.bool)
    check_file(bent.shape == center.shape == scale.shape == numbers.shape, "a map is misshapen")
    check_file(not bool((bent & ~numbers).any()), "a column is bent that does not hold numbers")
    plain = (center == 0) & (scale == 1)
    check_file(bool((bent | plain).all()), "a column is moved that is not bent")
    return ColumnMap(fact["bend"], bent, center, scale)


def _read_weight(shares: Any) -> Tensor:
    check_file(isinstance(shares, list) and len(shares) > 0, "a part has no networks")
    good = all(type(share) is float and 0 < share <= 1 + OFF for share in shares)
    check_file(good, "the weight of a network is not a number between 0 and 1")
    return torch.tensor(shares, dtype=torch.float64)


def _taken(left: dict[str, Tensor], name: str, dtype: torch.dtype, axes: int) -> Tensor:
    check_file(name in left, f"there is no tensor {name!r}")
    tensor = left.pop(name)
    check_file((tensor.dtype, tensor.dim()) == (dtype, axes), f"{name!r} is misshapen")
    return tensor
