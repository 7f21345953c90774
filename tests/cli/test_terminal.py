"""The command line in a real terminal, typed as a person would type it."""

import re
import shutil
import subprocess
import sys
import time
from uuid import uuid4

import numpy as np
import polars as pl
import pytest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A tmux window with a shell in a folder."""

    def __init__(self, folder):
        self.name, self.count = f"psilonnet-{uuid4().hex[:8]}", 0
        self.call("new-session", "-d", "-x", "110", "-y", "40", "-c", str(folder), "bash --norc")
        self.type(f"PS1='ready> '; alias psilonnet='{sys.executable} -m psilonnet'; clear")
        self.wait_for(r"^ready> $")

    def call(self, command, *words):
        target = ["-s", self.name] if command == "new-session" else ["-t", self.name]
        done = subprocess.run(
            ["tmux", command, *target, *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    def type(self, line):
        self.call("send-keys", "-l", line)
        self.call("send-keys", "Enter")

    def screen(self):
        return self.call("capture-pane", "-p", "-J")

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, shown := self.screen(), re.M):
            assert time.monotonic() < end, f"{pattern!r} did not appear in:\n{shown}"
            time.sleep(0.1)
        return shown

    def run(self, line, seconds=60):
        """Type a command and return all that the screen shows when it has ended."""
        self.count += 1  # what the last command left on the screen must not be taken for the end
        self.type(f"clear; {line}; echo command {self.count} ended with $?")
        return self.wait_for(rf"^command {self.count} ended with \d", seconds)


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    frame = {"size": x[:, 0], "town": rng.choice(["a", "b"], 400), "price": x.sum(axis=1)}
    pl.DataFrame(frame).write_csv(folder / "houses.csv")
    window = Terminal(folder)
    yield window
    window.call("kill-session")


def test_a_person_fits_predicts_and_pipes(terminal):
    shown = terminal.run(
        "psilonnet fit houses.csv --target price --out m.psilon --max-steps 10", seconds=120
    )
    assert "Written to m.psilon." in shown
    assert "ended with 0" in shown
    shown = terminal.run("psilonnet predict m.psilon houses.csv | head -n 3")
    assert "prediction" in shown
    assert "Traceback" not in shown
    assert "Broken pipe" not in shown
    shown = terminal.run("psilonnet predict m.psilon houses.csv --keep town | head -n 3")
    assert "town,prediction" in shown


def test_progress_is_shown_and_ctrl_c_stops_it(terminal):
    terminal.type(
        "clear; psilonnet fit houses.csv --target price --out n.psilon --max-steps 900000;"
        " echo ended with $?; ls"
    )
    terminal.wait_for(r"Fitting \(L1, clipped\): +\d+%.* left")  # the bar
    terminal.call("send-keys", "C-c")
    shown = terminal.wait_for(r"^houses.csv")
    assert "Stopped. Nothing half-done was written." in shown
    assert "ended with 130" in shown
    assert "Traceback" not in shown
    assert "n.psilon" not in shown.split("ended with 130")[1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("psilonnet fti houses.csv", "No such command 'fti'"),
        ("psilonnet fit house.csv --target price --out x", "There is no file 'house.csv'."),
        ("psilonnet fit houses.csv --target prize --out x", "has no column 'prize'"),
        ("psilonnet predict houses.csv houses.csv", "is not a model file of psilonnet"),
        ("psilonnet fit houses.csv --out x", "Missing option '--target'"),
    ],
)
def test_mistakes_are_one_sentence(line, said, terminal):
    shown = terminal.run(line)
    flat = " ".join(shown.replace("│", " ").split())
    assert said in flat
    assert "ended with 0" not in shown
    assert "Traceback" not in shown
