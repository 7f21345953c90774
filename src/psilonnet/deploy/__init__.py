"""From a network to an artefact."""

from psilonnet.deploy.compact import CompactNet
from psilonnet.deploy.model_file import ModelFileError, read_model_file, write_model_file
from psilonnet.deploy.onnx import Outcome, onnx_inputs, write_onnx, write_onnx_core

__all__ = [
    "CompactNet",
    "ModelFileError",
    "Outcome",
    "onnx_inputs",
    "read_model_file",
    "write_model_file",
    "write_onnx",
    "write_onnx_core",
]
