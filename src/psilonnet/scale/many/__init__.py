"""One model per group of a table."""

from psilonnet.scale.many.fit import fit_many
from psilonnet.scale.many.predict import predict_many
from psilonnet.scale.many.shards import GROUPS_PER_TASK

__all__ = ["GROUPS_PER_TASK", "fit_many", "predict_many"]
