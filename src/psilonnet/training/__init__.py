"""Training of many networks of one shape as one tensor program."""

from psilonnet.training.batches import Batch, Batches, Rows
from psilonnet.training.callbacks import (
    NARROWING,
    Callback,
    Narrowing,
    ProgressBar,
    narrow,
    narrowing_cost,
)
from psilonnet.training.checkpoint import Checkpoints, load_checkpoint, save_checkpoint
from psilonnet.training.history import DivergedError, Divergence, History
from psilonnet.training.loop import Run
from psilonnet.training.losses import LOSSES, Loss, Pinball, get_loss, loss_words
from psilonnet.training.path import warm_path
from psilonnet.training.plan import STRENGTHS, Plan
from psilonnet.training.population import (
    PopulationTooLargeError,
    check_memory,
    join_populations,
    members_of,
    memory_needed,
    repeat_member,
    stack_members,
    take_members,
)
from psilonnet.training.projected import project_directions_
from psilonnet.training.pruning import Pruning, live_widths
from psilonnet.training.rising import RisingPath
from psilonnet.training.schedules import one_cycle, trapezoid, trapezoid_of
from psilonnet.training.state import RunState

__all__ = [
    "LOSSES",
    "NARROWING",
    "STRENGTHS",
    "Batch",
    "Batches",
    "Callback",
    "Checkpoints",
    "DivergedError",
    "Divergence",
    "History",
    "Loss",
    "Narrowing",
    "Pinball",
    "Plan",
    "PopulationTooLargeError",
    "ProgressBar",
    "Pruning",
    "RisingPath",
    "Rows",
    "Run",
    "RunState",
    "check_memory",
    "get_loss",
    "join_populations",
    "live_widths",
    "load_checkpoint",
    "loss_words",
    "members_of",
    "memory_needed",
    "narrow",
    "narrowing_cost",
    "one_cycle",
    "project_directions_",
    "repeat_member",
    "save_checkpoint",
    "stack_members",
    "take_members",
    "trapezoid",
    "trapezoid_of",
    "warm_path",
]
