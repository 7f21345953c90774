"""Model files: safetensors with a JSON manifest in the header. Nothing in them is ever run."""

from __future__ import annotations

import hashlib
import json
import math
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from psilonnet._files import check_place, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

Array = np.ndarray[Any, Any]
# Of numbers only; a type from a file could ask for any amount of memory.
LABEL_TYPES = {"str", "object", "|b1", *(f"{o}{k}{n}" for o in "<|" for k in "iuf" for n in "1248")}
MOST_LETTERS = 2**22  # of labels in an array, where each has the room of the longest
# From 2 on: a weighted average of networks, in folded weights. From 3 on: errors on known rows.
FORMAT, OLDEST = 3, 2


class ModelFileError(ValueError):
    """A file that does not hold a model that this version can read."""


def check_file(holds: bool, what: str) -> None:
    """Refuse what a file says, unless it holds."""
    if not holds:
        raise ModelFileError(f"The file does not describe a valid model: {what}.")


@contextmanager
def as_file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is raised by what a file says into an error of that file."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:  # a manifest can be wrong in more ways than can be listed
        raise ModelFileError(
            f"{str(path)!r} does not describe a valid model ({type(error).__name__}: {error})."
        ) from error


def write_model_file(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a manifest and tensors to one file; a reader sees it whole or not at all."""
    path = Path(path)
    plain = {
        name: np.ascontiguousarray(tensor.detach().cpu().numpy())
        for name, tensor in tensors.items()
    }
    text = json.dumps({**manifest, "format": FORMAT})
    check_place(path)
    with written(path) as aside:
        try:
            save_file(plain, aside, metadata={"psilonnet": text, "sha256": _digest(text, plain)})
        except SafetensorError as error:  # such as a full disk
            raise OSError(f"{str(path)!r} could not be written ({error}).") from error


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the manifest and the tensors of a file, as :func:`read_model_arrays` does."""
    import torch  # noqa: PLC0415  # what only predicts does without

    manifest, arrays = read_model_arrays(path)
    return manifest, {name: torch.from_numpy(array) for name, array in arrays.items()}


def read_model_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the manifest and the arrays of a file.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or has another format.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        hint = " A folder of export_numpy is read by psilonnet.deploy.Predictor."
        raise FileNotFoundError(
            f"There is no model file at {str(path)!r}.{hint if path.is_dir() else ''}"
        )
    try:
        # The header is checked against the size of the file before anything is allocated.
        with safe_open(path, "np") as file:
            facts = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = facts["psilonnet"]
        intact = facts["sha256"] == _digest(text, arrays)
        manifest = json.loads(text)
    except Exception as error:  # whatever a damaged file makes the readers raise
        raise ModelFileError(
            f"{str(path)!r} is not a model file of psilonnet, or it is damaged "
            f"({type(error).__name__})."
        ) from error
    if not intact:
        raise ModelFileError(f"{str(path)!r} is damaged: its content does not match its checksum.")
    found = manifest.get("format") if isinstance(manifest, dict) else manifest
    if found not in range(OLDEST, FORMAT + 1):
        raise ModelFileError(
            f"This version reads model files of formats {OLDEST} to {FORMAT}. {str(path)!r} has "
            f"format {found!r}: load it with the version of psilonnet that wrote it, or fit again."
        )
    return manifest, arrays


def _digest(text: str, arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} torch.{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read_labels(data: Mapping[str, Any]) -> tuple[Array, float]:
    """Return the classes of a manifest's target and the temperature of their logits."""
    labels, dtype, temperature = data["classes"], data["dtype"], data["temperature"]
    check_file(isinstance(labels, list) and len(set(labels)) == len(labels) >= 2, "labels repeat")
    check_file(dtype in LABEL_TYPES, f"labels of type {dtype!r}")
    letters = len(labels) * max(len(str(label)) for label in labels)
    check_file(dtype != "str" or letters <= MOST_LETTERS, "the labels are too long")
    plain = {"str": str, "object": object}
    classes = np.array(labels, dtype=plain.get(dtype, dtype))
    check_file(classes.ndim == 1, "labels are not in a row")
    check_file(bool((np.unique(classes) == classes).all()), "the labels are not sorted")
    return classes, read_number(temperature, above=0.0)


def read_number(value: Any, *, least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a finite number of a manifest."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    good = good and math.isfinite(value) and value >= least and value > above
    check_file(good, f"{value!r} is not a valid number")
    return float(value)


def read_scales(data: Mapping[str, Any]) -> tuple[Array, Array, tuple[float, ...], bool]:
    """Return centers, scales, quantiles, and whether outputs are logarithms, of a target."""
    center = np.array([read_number(v) for v in data["center"]])
    scale = np.array([read_number(v, least=0.0) for v in data["scale"]])
    check_file(len(center) == len(scale) >= 1, "the target has no scale")
    levels = _read_levels(data["levels"], len(center)) if "levels" in data else ()
    if "link" in data:
        known = data["link"] == "log" and not levels and bool((scale == 1).all())
        check_file(known, "the link is unknown")
    return center, scale, levels, "link" in data


def _read_levels(data: Any, outputs: int) -> tuple[float, ...]:
    levels = tuple(read_number(level, least=0.0) for level in data)
    check_file(len(levels) in {1, outputs} and max(levels) < 1, "the quantiles are not known")
    check_file(min(levels) > 0 and sorted(set(levels)) == list(levels), "the quantiles are mixed")
    return levels
