"""A fitted model over every row of many Parquet files."""

from psilonnet.scale.files.predict import FilesFailedError, PredictedFiles, predict_files

__all__ = ["FilesFailedError", "PredictedFiles", "predict_files"]
