"""Run benchmarks one after the other and keep what each says in the end.

    python -m benchmarks.record fit "certify --quick"

Each line of ``experiments/results/benchmarks.jsonl`` is one benchmark: its command, the day, the
versions that matter, and its figures. A benchmark that is run again takes the place of its line.
"""

import argparse
import json
import shlex
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch

RESULTS = Path(__file__).parents[1] / "experiments" / "results" / "benchmarks.jsonl"


def record(words: str) -> dict[str, Any]:
    """Run a benchmark, named with its options, and return its line."""
    command = [sys.executable, "-m", *shlex.split(f"benchmarks.{words}")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {
        "command": f"python -m benchmarks.{words}",
        "day": f"{datetime.now(timezone.utc):%Y-%m-%d}",
        "torch": torch.__version__,
        "numpy": np.__version__,
        "figures": json.loads(done.stdout.splitlines()[-1]),
    }


def write_line(line: dict[str, Any], path: Path) -> None:
    """Write a line in the place of an older one of the same command."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = {json.loads(old)["command"]: old for old in lines}
    kept[line["command"]] = json.dumps(line)
    path.write_text("".join(f"{kept[command]}\n" for command in sorted(kept)), encoding="utf-8")


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmarks", nargs="+", help="such as fit or 'certify --quick'")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of all lines")
    given = parser.parse_args()
    for words in given.benchmarks:
        line = record(words)
        write_line(line, given.out)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
