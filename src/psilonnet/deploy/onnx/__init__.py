"""Models as ONNX files."""

from psilonnet.deploy.onnx.feeds import onnx_inputs
from psilonnet.deploy.onnx.file import write_onnx, write_onnx_core
from psilonnet.deploy.onnx.outcome import Outcome

__all__ = ["Outcome", "onnx_inputs", "write_onnx", "write_onnx_core"]
