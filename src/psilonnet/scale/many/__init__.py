"""One model per group of a table."""

from psilonnet.scale.many.fit import GROUPS_PER_TASK, fit_many
from psilonnet.scale.many.predict import predict_many

__all__ = ["GROUPS_PER_TASK", "fit_many", "predict_many"]
