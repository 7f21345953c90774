"""The training of a task of fit_many alone: 32 networks, one per group, as one population.

Networks of width 64 and depth 2 on groups of ten columns, 300 steps with a fixed strength, all rows
of a group in every step. Groups of 150 rows are compared with uneven ones of 150 on average (from
50 to 250) that share a population as fit_many deals them (similar sizes together) and as they
come; shorter groups are padded. Seconds of the processor's time per network, populations in turn,
medians of the rounds.

    python -m benchmarks.group_step [--quick | --tiny]

With ``--other`` the even groups are also trained by the version in another source tree, in turn,
each in a process of its own that has made its first training already.

    python -m benchmarks.group_step --other OTHER_TREE/src
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import process_time

import torch

from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import Plan, Rows, Run

GROUPS, ROWS, COLUMNS, STEPS, ROUNDS = 32, 150, 10, 300, 9
TASKS = 4  # of uneven groups
Result = tuple[float, float]  # seconds and mean squared error of a network


def train(sizes: list[int], steps: int, seed: int = 0) -> Result:
    """Train a network for each group."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), COLUMNS, generator=rng)
    y = x[:, :1] + (x[:, 1:2] * x[:, 2:3]) + 0.3 * torch.randn(len(x), 1, generator=rng)
    most, start, own = max(sizes), 0, []
    for size in sizes:
        numbers = torch.arange(start, start + size)
        own.append(torch.nn.functional.pad(numbers, (0, most - size), value=-1))
        start += size
    net = PSiLONNet(COLUMNS, 1, width=64, depth=2, members=(len(sizes),), generator=rng)
    rows = Rows(x, y, None, torch.stack(own))
    plan = Plan(steps=steps, batch_size=256, evaluate_every=steps, progress=False)
    begin = process_time()
    run = Run(
        net, rows, loss="squared_error", penalty=path_norm_penalty, reg_strength=5e-3, plan=plan
    )
    run.train()
    seconds = process_time() - begin
    with torch.no_grad():
        errors = (run.net(x) - y).square()
        losses = [errors[k, own[k][own[k] >= 0]].mean() for k in range(len(sizes))]
    return seconds / len(sizes), float(torch.stack(losses).mean())


def serve() -> None:
    """Train even groups for each line that is read; the first is a number of steps."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(train([ROWS] * GROUPS, int(line))), flush=True)


class Version:
    """A process that trains with the sources in a folder."""

    def __init__(self, source: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        own = {**os.environ, "PYTHONPATH": source}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=own)

    def __enter__(self) -> "Version":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # it ends with its input

    def train(self, steps: int) -> Result:
        """Train once."""
        asked, told = self.process.stdin, self.process.stdout
        assert asked is not None
        assert told is not None
        print(steps, file=asked, flush=True)
        seconds, loss = json.loads(told.readline())
        return seconds, loss


def uneven_tasks(*, dealt: bool) -> list[list[int]]:
    """Return the sizes of groups that share a population, task by task."""
    rng = torch.Generator().manual_seed(0)
    sizes = torch.randint(50, 251, (GROUPS * TASKS,), generator=rng)
    sizes = sizes.sort(descending=True).values if dealt else sizes
    return [task.tolist() for task in sizes.split(GROUPS)]


def rounds_of(cases: dict[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {name: [] for name in cases}
    for _ in range(rounds + 1):
        for name, case in cases.items():
            found[name].append(case())
    return {name: results[1:] for name, results in found.items()}


def padding(steps: int, rounds: int) -> dict[str, float]:
    """Return what padding costs, per row of the groups."""

    def mean(tasks: list[list[int]]) -> Result:
        results = [train(task, steps) for task in tasks]
        return sum(r[0] for r in results) / len(tasks), sum(r[1] for r in results) / len(tasks)

    tasks = {name: uneven_tasks(dealt=name == "dealt") for name in ("dealt", "as_they_come")}
    even = [ROWS] * GROUPS
    found = rounds_of(
        {
            "even": lambda: mean([even] * TASKS),
            "dealt": lambda: mean(tasks["dealt"]),
            "as_they_come": lambda: mean(tasks["as_they_come"]),
        },
        rounds,
    )
    figures = {}
    for name, own in tasks.items():
        padded = sum(max(task) * len(task) for task in own) / sum(map(sum, own))
        ratios = [a[0] / b[0] for a, b in zip(found[name], found["even"], strict=True)]
        figures[f"rows_with_padding_{name}"] = padded
        figures[f"uneven_over_even_{name}"] = median(ratios)
    return figures | {"models_per_core_hour": 3600 / median(s for s, _ in found["even"])}


def against(other: str, steps: int, rounds: int) -> dict[str, float]:
    """Return how this version compares with another."""
    with ExitStack() as stack:
        here = str(Path(__file__).resolve().parents[1] / "src")
        ours, theirs = (stack.enter_context(Version(source)) for source in (here, other))
        found = rounds_of(
            {"ours": lambda: ours.train(steps), "theirs": lambda: theirs.train(steps)}, rounds
        )
    pairs = list(zip(found["ours"], found["theirs"], strict=True))
    return {
        "models_over_other": median(b[0] / a[0] for a, b in pairs),
        "worst_models_over_other": min(b[0] / a[0] for a, b in pairs),
        "loss_over_other": median(a[1] / b[1] for a, b in pairs),
        "trained_per_core_hour": 3600 / median(a[0] for a, _ in pairs),
        "other_trained_per_core_hour": 3600 / median(b[0] for _, b in pairs),
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    parser.add_argument("--other", help="the folder with the sources of another version")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    from benchmarks.figures import print_figures  # noqa: PLC0415  # another version needs it not

    torch.set_num_threads(1)
    steps = 4 if given.tiny else STEPS
    rounds = 1 if given.tiny else 3 if given.quick else ROUNDS
    if given.other:
        print_figures(against(given.other, steps, rounds))
    else:
        print_figures(padding(steps, rounds))


if __name__ == "__main__":
    main()
