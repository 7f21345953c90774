import pytest

from psilonnet.training import (
    Plan,
)


def test_plan_refuses_nonsense():
    with pytest.raises(ValueError, match=r"'batch_size' of a Plan must be .* at least 1. Got 0"):
        Plan(batch_size=0)
    with pytest.raises(ValueError, match=r"'steps' of a Plan must be a whole number.* Got 10.5"):
        Plan(steps=10.5)
