import signal

import pytest

from psilonnet.training import (
    Callback,
)
from training.small_runs import run_of, small_net


def test_ctrl_c_in_the_last_step_is_not_lost():
    class Press(Callback):
        def on_evaluation(self, run):
            if run.step == run.plan.steps:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_of(small_net(), callbacks=[Press()]).train()
