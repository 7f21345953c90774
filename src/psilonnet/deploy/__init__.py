"""From a network to an artefact."""

from psilonnet.deploy.model_file import ModelFileError, read_model_file, write_model_file

__all__ = ["ModelFileError", "read_model_file", "write_model_file"]
