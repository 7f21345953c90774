import os
import subprocess
import sys
from math import inf, nan

import pytest
import torch

from psilonnet.nn import path_norm_penalty
from psilonnet.training import (
    History,
)
from training.small_runs import run_of, small_net

USER = """\
from psilonnet.training.history import History


def curve(history: History) -> object:
    return history.{name}
"""


def test_type_checker_sees_a_mistyped_column(tmp_path, repo):
    pytest.importorskip("mypy")
    files = [tmp_path / "right.py", tmp_path / "mistyped.py"]
    for file, name in zip(files, ("valid_loss", "valid_los"), strict=True):
        file.write_text(USER.format(name=name))
    # The history and its users alone: torch would take half a minute.
    settings = ["--strict", "--follow-imports=skip", "--disable-error-code=misc"]
    settings += ["--cache-dir", str(tmp_path), "--config-file", ""]
    files.append(repo / "src/psilonnet/training/history.py")
    command = [sys.executable, "-m", "mypy", *settings, *map(str, files)]
    env = {**os.environ, "MYPYPATH": str(repo / "src")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    complaints = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(complaints) == 1
    assert "mistyped.py:5" in complaints[0]
    assert '"History" has no attribute "valid_los"' in complaints[0]


def test_history_has_its_columns_and_no_others():
    history = History(members=3)
    history.add([0, 2], train_loss=[1.0, 2.0], valid_loss=[3.0, 4.0], penalty=[5.0, 6.0])
    history.add([2], train_loss=[0.5], valid_loss=[nan], penalty=[7.0])
    expected = {
        "train_loss": [[1.0, nan, 2.0], [nan, nan, 0.5]],
        "valid_loss": [[3.0, nan, 4.0], [nan, nan, nan]],
        "penalty": [[5.0, nan, 6.0], [nan, nan, 7.0]],
    }
    for name, lines in expected.items():
        torch.testing.assert_close(
            getattr(history, name), torch.tensor(lines).double(), rtol=0, atol=0, equal_nan=True
        )
    assert History(members=3).penalty.shape == (0, 3)
    with pytest.raises(AttributeError):
        _ = history.valid_los


def test_last_evaluation_counts_even_if_its_loss_is_not_finite():
    history = History(members=4)  # the last is lost before it is evaluated
    history.add([0, 1, 2], train_loss=[1.0] * 3, valid_loss=[3.0] * 3, penalty=[5.0] * 3)
    history.add([1, 2], train_loss=[1.0] * 2, valid_loss=[nan, inf], penalty=[6.0, 7.0])
    for name, ends in {"valid_loss": [3.0, nan, inf, nan], "penalty": [5.0, 6.0, 7.0, nan]}.items():
        torch.testing.assert_close(
            history.last(name), torch.tensor(ends).double(), rtol=0, atol=0, equal_nan=True
        )


def test_history_has_a_line_per_evaluation():
    run = run_of(small_net(), steps=90)
    run.train()
    history = run.history
    assert history.step == [25, 50, 75, 90]
    assert history.train_loss.shape == (4, 3)
    torch.testing.assert_close(history.penalty[-1], path_norm_penalty(run.net).detach().double())
    torch.testing.assert_close(history.valid_loss[-1], run.mean_loss(run.valid_rows).double())
