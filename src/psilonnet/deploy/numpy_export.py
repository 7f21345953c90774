"""Exports that need NumPy only: weights, a manifest, and the file that reads them."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psilonnet._files import check_folder, remove_asides, written
from psilonnet.deploy import predictor
from psilonnet.deploy.views import shared_views

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from torch import Tensor

    from psilonnet.deploy.views import View
    from psilonnet.nn import AveragedNet, Part, PlainLayer

BEGINS = b'"""Predict with an exported model'  # the predictor.py of any version
Arrays = dict[str, np.ndarray[Any, Any]]


def write_numpy_export(
    folder: str | os.PathLike[str],
    manifest: Mapping[str, Any],
    net: AveragedNet,
    moves: Tensor,
) -> None:
    """Write a model as ``predictor.py``, ``manifest.json`` and ``weights.npz``.

    Parameters
    ----------
    folder : path
        It is made if it is not there; the three files of an older export are replaced together.
        Files of these names that no export has written are left, and refused.
    manifest : mapping
        The encoder and the target as plain data.
    net : AveragedNet
    moves : Tensor of shape (combinations, encoded columns)
        How far the outputs, or the margins of pairs of classes, move per unit of an input.
    """
    arrays: Arrays = {"moves": moves.numpy()}
    views, numbers = shared_views(net)
    parts = [
        {"view": v, **_add_part(arrays, p, part, views[v])}
        for p, (part, v) in enumerate(zip(net.parts, numbers, strict=True))
    ]
    bends = [_add_view(arrays, v, view) for v, view in enumerate(views)]
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    weights = packed.getvalue()
    digest = hashlib.sha256(weights).hexdigest()
    facts = {**manifest, "format": predictor.FORMAT, "views": bends, "parts": parts}
    facts["weights"] = digest
    _write_files(Path(folder), json.dumps(facts, indent=1), weights)


def _write_files(folder: Path, text: str, weights: bytes) -> None:
    """Write the three files, so that a reader finds the old model or the new one at any time.

    All are written aside first. The manifest says which weights it belongs to, and the predictor
    looks for them under both names, so the move of the manifest is the moment of the change.
    """
    is_new = not folder.exists()
    check_folder(folder)
    _check_ours(folder)
    folder.mkdir(parents=True, exist_ok=True)
    old, new = (folder / name for name in predictor.WEIGHTS)
    facts, code = folder / "manifest.json", folder / "predictor.py"
    try:
        # They are moved into place from the last to the first.
        with written(facts) as a, written(new) as b, written(code) as c:
            a.write_text(text, encoding="utf-8")
            b.write_bytes(weights)
            shutil.copyfile(Path(predictor.__file__), c)
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    new.replace(old)
    remove_asides((facts, new, code))


def _check_ours(folder: Path) -> None:
    """Refuse a folder where another program's files have the names of an export's."""
    facts, code = folder / "manifest.json", folder / "predictor.py"
    there = [path for path in (facts, code, folder / predictor.WEIGHTS[0]) if path.exists()]
    if facts.exists():
        try:
            ours = {"format", "encoder", "weights"} <= set(json.loads(facts.read_bytes()))
        except (ValueError, TypeError):
            ours = False
    else:  # an export that was killed has moved the code before the manifest
        ours = code.exists() and code.read_bytes().startswith(BEGINS)
    if there and not ours:
        raise FileExistsError(
            f"An export does not replace files that are none of an older export. {str(folder)!r} "
            f"has {' and '.join(repr(path.name) for path in there)}: name another folder."
        )


def _add_view(arrays: Arrays, number: int, view: View) -> str:
    """Put a map of columns among the arrays, and return how it bends them."""
    columns = view.columns
    if columns.bend != "identity":
        own = {"center": columns.center, "scale": columns.scale, "bent": columns.bent}
        arrays |= {f"view.{number}.{name}": tensor.numpy() for name, tensor in own.items()}
        arrays[f"view.{number}.inputs"] = view.inputs.numpy()
    return columns.bend


def _add_part(arrays: Arrays, number: int, part: Part, view: View) -> dict[str, Any]:
    """Put the networks of a part among the arrays, and return what they are."""
    arrays[f"{number}.inputs"] = view.places(part).numpy()
    for k, layer in enumerate(part.net.layers):
        arrays |= _layer_arrays(f"{number}.{k}", layer)
    return {
        "splits": [layer.split for layer in part.net.layers],
        "weight": part.weight.tolist(),
    }


def _layer_arrays(name: str, layer: PlainLayer) -> Arrays:
    """Return a layer's arrays: the matrices densely, or as compressed sparse rows if smaller."""
    weight = _narrowest(layer.weight.flatten(2).flatten(0, 1).numpy())  # (rows, pieces * in)
    rows, columns = np.nonzero(weight)
    sparse = {
        f"{name}.values": weight[rows, columns],
        f"{name}.columns": columns.astype(np.min_scalar_type(weight.shape[1])),
        f"{name}.counts": np.bincount(rows, minlength=len(weight)).astype(np.uint32),
    }
    smaller = sum(array.nbytes for array in sparse.values()) < weight.nbytes
    arrays = sparse if smaller else {name: weight}
    arrays[f"{name}.bias"] = _narrowest(layer.bias.numpy())
    if layer.edges is not None:
        same = bool((layer.edges == layer.edges[:1]).all())  # split once, for all networks
        edges = layer.edges[:1] if same else layer.edges
        arrays[f"{name}.edges"] = _narrowest(edges.numpy())
    return arrays


def _narrowest(weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the weights in float32 if that loses nothing."""
    narrow = weight.astype(np.float32)
    return narrow if bool((narrow == weight).all()) else weight
