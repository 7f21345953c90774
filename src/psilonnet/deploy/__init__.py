"""From a network to an artefact.

The names below are loaded on first use, so that ``Predictor`` needs NumPy only.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psilonnet.deploy.compact import CompactNet, compact_parts
    from psilonnet.deploy.file_predictor import FilePredictor
    from psilonnet.deploy.model_file import (
        ModelFileError,
        as_file_errors,
        check_file,
        read_labels,
        read_model_file,
        read_number,
        read_scales,
        write_model_file,
    )
    from psilonnet.deploy.net_tensors import net_from_tensors, net_to_tensors
    from psilonnet.deploy.numpy_export import write_numpy_export
    from psilonnet.deploy.onnx import Outcome, onnx_inputs, write_onnx, write_onnx_core
    from psilonnet.deploy.predictor import (
        LARGEST_LOG,
        Notes,
        Predictor,
        class_numbers,
        probabilities,
        read_export,
    )

_HOMES = {
    "LARGEST_LOG": "predictor",
    "CompactNet": "compact",
    "FilePredictor": "file_predictor",
    "ModelFileError": "model_file",
    "Outcome": "onnx",
    "Notes": "predictor",
    "Predictor": "predictor",
    "as_file_errors": "model_file",
    "check_file": "model_file",
    "class_numbers": "predictor",
    "compact_parts": "compact",
    "net_from_tensors": "net_tensors",
    "net_to_tensors": "net_tensors",
    "onnx_inputs": "onnx",
    "probabilities": "predictor",
    "read_export": "predictor",
    "read_labels": "model_file",
    "read_model_file": "model_file",
    "read_number": "model_file",
    "read_scales": "model_file",
    "write_model_file": "model_file",
    "write_numpy_export": "numpy_export",
    "write_onnx": "onnx",
    "write_onnx_core": "onnx",
}

__all__ = [
    "LARGEST_LOG",
    "CompactNet",
    "FilePredictor",
    "ModelFileError",
    "Notes",
    "Outcome",
    "Predictor",
    "as_file_errors",
    "check_file",
    "class_numbers",
    "compact_parts",
    "net_from_tensors",
    "net_to_tensors",
    "onnx_inputs",
    "probabilities",
    "read_export",
    "read_labels",
    "read_model_file",
    "read_number",
    "read_scales",
    "write_model_file",
    "write_numpy_export",
    "write_onnx",
    "write_onnx_core",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"psilonnet.deploy.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'psilonnet.deploy' has no attribute {name!r}")
