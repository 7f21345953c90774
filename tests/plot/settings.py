"""Settings of a model that is fitted in a moment."""

from psilonnet import Design

SMALL = {
    "width": 8,
    "depth": 1,
    "max_steps": 40,
    "cv": 2,
    "random_state": 0,
    "designs": [Design(), Design(directions="l2", pieces=4)],
}
