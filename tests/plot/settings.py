"""Settings of a model that is fitted in a moment."""

SMALL = {"width": 8, "depth": 1, "max_steps": 40, "random_state": 0, "knots": 0}
