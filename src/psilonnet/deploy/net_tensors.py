"""A weighted average of networks as tensors and facts for a model file, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from psilonnet.deploy.net_arrays import read_parts
from psilonnet.nn import AveragedNet, ColumnMap, Part, PlainLayer, PlainNet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psilonnet.deploy.net_arrays import LayerArrays, PartArrays
    from psilonnet.nn import Bend


def net_to_tensors(net: AveragedNet) -> tuple[list[dict[str, Any]], dict[str, Tensor]]:
    """Return what the parts are, and their tensors: all numbers of layers in float32.

    Raises
    ------
    RuntimeError
        If a number is not one of float32: rounding it here would make another model of it.
    """
    facts = []
    tensors: dict[str, Tensor] = {}
    for p, part in enumerate(net.networks):
        tensors |= {  # copies: parts may share them, which a file cannot
            f"{p}.inputs": part.inputs.clone(),
            f"{p}.center": part.columns.center.clone(),
            f"{p}.scale": part.columns.scale.clone(),
        }
        if part.increasing is not None:
            name = f"{p}.increasing"
            tensors[name] = _narrow(name, part.increasing)
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
    """Return the networks of a file.

    The parameters are those of :func:`psilonnet.deploy.net_arrays.read_parts`, which checks them,
    as tensors.
    """
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    parts = read_parts(facts, arrays, numbers=numbers.numpy(), outputs=outputs)
    return AveragedNet([_part(part) for part in parts], len(numbers))


def _part(part: PartArrays) -> Part:
    bent, center, scale = map(torch.from_numpy, (part.bent, part.center, part.scale))
    columns = ColumnMap(cast("Bend", part.bend), bent, center, scale)
    net = PlainNet.of_layers([_layer(layer) for layer in part.layers])
    term = None if part.increasing is None else torch.from_numpy(part.increasing).double()
    weight, inputs = torch.from_numpy(part.weight), torch.from_numpy(part.inputs)
    return Part(net, weight, columns, inputs, term)


def _layer(layer: LayerArrays) -> PlainLayer:
    edges = None if layer.edges is None else torch.from_numpy(layer.edges).double()
    weight, bias = torch.from_numpy(layer.weight).double(), torch.from_numpy(layer.bias).double()
    return PlainLayer(weight, bias, layer.split, edges)
