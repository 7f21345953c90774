"""From a network to an artefact."""

from psilonnet.deploy.compact import CompactNet
from psilonnet.deploy.model_file import ModelFileError, read_model_file, write_model_file

__all__ = ["CompactNet", "ModelFileError", "read_model_file", "write_model_file"]
