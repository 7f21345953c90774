"""Model files: safetensors with a JSON manifest in the header. Nothing in them is ever run."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from psilonnet._files import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

# From 2 on: a weighted average of networks, in folded weights. From 3 on: errors on known rows.
FORMAT, OLDEST = 3, 2


class ModelFileError(ValueError):
    """A file that does not hold a model that this version can read."""


def check_file(holds: bool, what: str) -> None:
    """Refuse what a file says, unless it holds."""
    if not holds:
        raise ModelFileError(f"The file does not describe a valid model: {what}.")


def write_model_file(
    path: str | os.PathLike[str], manifest: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Write a manifest and tensors to one file; a reader sees it whole or not at all."""
    path = Path(path)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps({**manifest, "format": FORMAT})
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write to: make it.")
    with written(path) as aside:
        try:
            save_file(plain, aside, metadata={"psilonnet": text, "sha256": _digest(text, plain)})
        except SafetensorError as error:  # such as a full disk
            raise OSError(f"{str(path)!r} could not be written ({error}).") from error


def read_model_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the manifest and the tensors of a file, on the CPU.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, or has another format.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file at {str(path)!r}.")
    try:
        # The header is checked against the size of the file before anything is allocated.
        with safe_open(path, "pt") as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = facts["psilonnet"]
        intact = facts["sha256"] == _digest(text, tensors)
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
    return manifest, tensors


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
