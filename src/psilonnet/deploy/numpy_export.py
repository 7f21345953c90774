"""Exports that need NumPy only: weights, a manifest, and the file that reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet.deploy import predictor
from psilonnet.deploy.compact import compact_nets

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from torch import Tensor

    from psilonnet.deploy.compact import CompactNet
    from psilonnet.nn import Network, PlainLayer

Arrays = dict[str, np.ndarray[Any, Any]]


def write_numpy_export(
    folder: str | os.PathLike[str],
    manifest: Mapping[str, Any],
    net: Network,
    moves: Tensor,
) -> None:
    """Write a model as ``predictor.py``, ``manifest.json`` and ``weights.npz``.

    Parameters
    ----------
    folder : path
        It is made if it is not there; the three files in it are replaced.
    manifest : mapping
        The encoder and the target as plain data.
    net : Network
        Its members are averaged.
    moves : Tensor of shape (combinations, encoded columns)
        How far the outputs, or the margins of pairs of classes, move per unit of an input.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays: Arrays = {"moves": moves.numpy()}
    nets = [_add_net(arrays, m, live) for m, live in enumerate(compact_nets(net))]
    np.savez_compressed(folder / "weights.npz", **arrays)  # type: ignore[arg-type]
    text = json.dumps({**manifest, "format": predictor.FORMAT, "nets": nets}, indent=1)
    (folder / "manifest.json").write_text(text, encoding="utf-8")
    shutil.copyfile(Path(predictor.__file__), folder / "predictor.py")


def _add_net(arrays: Arrays, member: int, net: CompactNet) -> list[dict[str, Any]]:
    """Put the live part of a network among the arrays, and return what its layers are."""
    arrays[f"{member}.inputs"] = net.inputs.numpy()
    for k, layer in enumerate(net.plain.layers):
        arrays |= _weight_arrays(f"{member}.{k}", layer)
    return [
        {"split": layer.split, "shape": list(layer.weight[0].flatten(1).shape)}
        for layer in net.plain.layers
    ]


def _weight_arrays(name: str, layer: PlainLayer) -> Arrays:
    """Return a layer's arrays: the matrix densely, or as compressed sparse rows if smaller."""
    weight = _narrowest(layer.weight[0].flatten(1).numpy())  # (out, pieces * in)
    rows, columns = np.nonzero(weight)
    sparse = {
        f"{name}.values": weight[rows, columns],
        f"{name}.columns": columns.astype(np.min_scalar_type(weight.shape[1])),
        f"{name}.counts": np.bincount(rows, minlength=len(weight)).astype(np.uint32),
    }
    smaller = sum(array.nbytes for array in sparse.values()) < weight.nbytes
    arrays = sparse if smaller else {name: weight}
    arrays[f"{name}.bias"] = layer.bias[0].numpy()
    if layer.edges is not None:
        arrays[f"{name}.edges"] = layer.edges[0].numpy()
    return arrays


def _narrowest(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the weights in float32 if that loses nothing."""
    narrow = weight.astype(np.float32)
    return narrow if bool((narrow == weight).all()) else weight
