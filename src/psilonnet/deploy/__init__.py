"""From a network to an artefact."""

from psilonnet.deploy.compact import CompactNet, compact_nets
from psilonnet.deploy.model_file import ModelFileError, read_model_file, write_model_file
from psilonnet.deploy.numpy_export import write_numpy_export

__all__ = [
    "CompactNet",
    "ModelFileError",
    "compact_nets",
    "read_model_file",
    "write_model_file",
    "write_numpy_export",
]
