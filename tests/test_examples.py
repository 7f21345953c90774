"""Examples run as a user would run them, and say what they promise."""

import re
import subprocess
import sys


def test_own_loop_example_learns_and_is_short(repo, data_dir):
    example = repo / "examples" / "own_loop.py"
    assert len(example.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, str(example), str(data_dir)], capture_output=True, text=True, check=True
    )
    variance, bound = re.fullmatch(
        r"explained variance (\S+), Lipschitz bound (\S+)\n", done.stdout
    ).groups()
    assert float(variance) > 0.7
    assert 0 < float(bound) < 100
