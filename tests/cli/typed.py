"""A command as a user types it: in this process, or in one of its own where that matters."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

import pytest

from psilonnet.cli import main


def process(*words):
    """Run a command in a process of its own, which takes some seconds."""
    command = [sys.executable, "-m", "psilonnet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def typed(*words):
    """Run a command in this process; the result is that of :func:`process`."""
    out, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = patch.object(sys, "argv", ["psilonnet", *map(str, words)])
    with given, redirect_stdout(out), redirect_stderr(said), pytest.raises(SystemExit) as end:
        main()
    code = end.value.code
    if isinstance(code, str):  # Python prints it and ends with 1
        said.write(f"{code}\n")
        code = 1
    for stream in (out, said):
        stream.seek(0)
    return subprocess.CompletedProcess(words, code or 0, out.read(), said.read())


def run(*words):
    """Run a command that must succeed, and return what it printed and what it said."""
    done = typed(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def refusal(*words):
    """Run a command that must fail, and return its sentence."""
    done = typed(*words)
    assert done.returncode == 1
    (sentence,) = done.stderr.splitlines()
    return sentence
