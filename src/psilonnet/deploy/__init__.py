"""From a network to an artefact."""

from psilonnet.deploy.compact import CompactNet, compact_nets
from psilonnet.deploy.model_file import ModelFileError, read_model_file, write_model_file
from psilonnet.deploy.numpy_export import write_numpy_export
from psilonnet.deploy.onnx import Outcome, onnx_inputs, write_onnx, write_onnx_core

__all__ = [
    "CompactNet",
    "ModelFileError",
    "Outcome",
    "compact_nets",
    "onnx_inputs",
    "read_model_file",
    "write_model_file",
    "write_numpy_export",
    "write_onnx",
    "write_onnx_core",
]
