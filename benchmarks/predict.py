"""Shipped models: latency of one row, rows per second, bytes and memory, ours and the peers'.

Models are trained on 2,000 rows with the defaults, written as they would be shipped and read back.
"pruned" is the same with prune=True, compacted. Peers that are not installed are left out
(``experiments/requirements-rivals.txt`` lists them).

    python -m benchmarks.predict --data DIR [--quick | --tiny]

Without --data, made-up rows are used.
"""

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.contenders import write_ours, write_peers
from benchmarks.figures import print_figures
from benchmarks.readers import memory_of, read, size_of
from experiments.data import load_table, scale_target, split_rows
from experiments.timing import interleaved
from psilonnet import PSiLONClassifier, PSiLONRegressor
from psilonnet.deploy import CompactNet

TABLES = ("higgs", "jannis", "house_sales", "bike_sharing_demand", "superconduct")
COLUMNS = (
    "dataset", "model", "latency_us", "frame_latency_us", "rows_per_s", "bytes", "memory_mb",
    "test_loss",
)  # fmt: skip
BLOCK = 20_000  # rows of one call


@dataclass(frozen=True)
class Task:
    """A table of numbers, split."""

    name: str
    kind: str
    train: tuple[Any, Any]
    test: tuple[Any, Any]


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    train: int  # rows
    steps: int | str
    rows: int
    rounds: int


FULL = Size(2000, "auto", 200_000, 300)
QUICK = Size(300, 60, 20_000, 10)
TINY = Size(60, 2, 100, 1)


def tasks(data: str | None, train: int) -> Iterator[Task]:
    """Yield the tables; categories are numbers here, so that all libraries can read arrays."""
    if data is None:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(6000, 12))
        y = x[:, 0] + np.abs(x[:, 1]) + 0.3 * rng.normal(size=6000)
        yield Task("made_up", "regression", (x[:train], y[:train]), (x[2000:], y[2000:]))
        return
    for name in TABLES:
        table = load_table(name, data)
        split = split_rows(len(table.y), seed=0)
        frame = table.x.apply(lambda c: c.cat.codes if c.dtype == "category" else c)
        x, y = frame.to_numpy(float), scale_target(table, split.train)
        yield Task(name, table.task, *((x[r], y[r]) for r in (split.train[:train], split.test)))


def fit_ours(task: Task, size: Size) -> dict[str, Any]:
    """Return a model of ours as it comes, and one that is pruned."""
    kind = PSiLONRegressor if task.kind == "regression" else PSiLONClassifier
    settings: dict[str, Any] = {"max_steps": size.steps, "random_state": 0, "verbose": False}
    ways = {"": False, " pruned": True}
    return {name: kind(**settings, prune=prune).fit(*task.train) for name, prune in ways.items()}


def loss_of(model: Any, task: Task) -> float:
    """Return the root mean squared error, or the cross-entropy."""
    x, y = task.test
    if task.kind == "regression":
        return float(np.sqrt(np.mean((model.predict(x) - y) ** 2)))
    shares = model.predict_proba(x)[np.arange(len(y)), y.astype(int)]
    return float(-np.log(shares).mean())


def measure(task: Task, files: dict[str, Path], size: Size, folder: Path) -> list[dict[str, Any]]:
    """Return a line of figures per contender."""
    calls = {name: read(name, path) for name, path in files.items()}
    names = [f"x{k}" for k in range(task.test[0].shape[1])]
    row = np.ascontiguousarray(task.test[0][:1])
    frame = pd.DataFrame(row, columns=names)
    block = np.resize(task.test[0], (min(BLOCK, size.rows), len(names)))
    one = interleaved({n: partial(c, row) for n, c in calls.items()}, rounds=size.rounds)
    framed = interleaved({n: partial(c, frame) for n, c in calls.items()}, rounds=size.rounds)
    rounds = max(1, size.rows // len(block))
    many = interleaved({n: partial(c, block) for n, c in calls.items()}, rounds=rounds, warmup=1)
    saved = folder / "row.npy"
    np.save(saved, row)
    return [
        {
            "dataset": task.name,
            "model": name,
            "latency_us": one[name] * 1e6,
            "frame_latency_us": framed[name] * 1e6,
            "rows_per_s": len(block) / many[name],
            "bytes": size_of(path),
            "memory_mb": memory_of(name, path, saved),
        }
        for name, path in files.items()
    ]


def sparse_over_dense(pruned: Any, rounds: int) -> float:
    """Return the time of sparse products with the compacted matrices, against dense ones."""
    layers = CompactNet(pruned.net_.parts[0].net).plain.layers
    matrices = [layer.weight[0].flatten(1) for layer in layers]
    inputs = [torch.randn(matrix.shape[1], 4096, dtype=matrix.dtype) for matrix in matrices]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its sparse tensors a beta
        sparse = [matrix.to_sparse_csr() for matrix in matrices]
    times = interleaved(
        {
            "dense": lambda: [m @ x for m, x in zip(matrices, inputs, strict=True)],
            "sparse": lambda: [m @ x for m, x in zip(sparse, inputs, strict=True)],
        },
        rounds=rounds,
    )
    return times["sparse"] / times["dense"]


def run_task(task: Task, size: Size) -> tuple[list[dict[str, Any]], float]:
    """Fit, write, read back and measure everything on one table."""
    models = fit_ours(task, size)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files: dict[str, Path] = {}
        for ending, model in models.items():
            own = folder / f"ours{ending}".replace(" ", "_")
            own.mkdir()
            files |= {runtime + ending: path for runtime, path in write_ours(model, own).items()}
        files |= write_peers(task.kind, *task.train, folder)
        lines = measure(task, files, size, folder)
    for line in lines:
        if line["model"] in ("torch", "torch pruned"):
            line["test_loss"] = loss_of(models[line["model"].removeprefix("torch")], task)
    return lines, sparse_over_dense(models[" pruned"], min(30, size.rounds))


def figures_of(lines: list[dict[str, Any]], ratios: list[float]) -> dict[str, float]:
    """Return medians over the tables."""

    def over(column: str, runtime: str) -> float:
        pairs = zip(
            (r[column] for r in lines if r["model"] == f"{runtime} pruned"),
            (r[column] for r in lines if r["model"] == runtime),
            strict=True,
        )
        return median(a / b for a, b in pairs)

    losses = [r["test_loss"] for r in lines if "test_loss" in r]
    figures = {
        "pruned_over_dense_throughput": over("rows_per_s", "numpy"),
        "pruned_over_dense_bytes": over("bytes", "numpy"),
        "pruned_minus_dense_loss": max(
            b - a for a, b in zip(losses[::2], losses[1::2], strict=True)
        ),
        "sparse_over_dense_product": median(ratios),
    }
    for name in dict.fromkeys(line["model"] for line in lines):
        own = [line for line in lines if line["model"] == name]
        for column in ("latency_us", "rows_per_s"):
            figures[f"{column}_{name.replace(' ', '_')}"] = median(r[column] for r in own)
    return figures


def main() -> None:
    """Run the benchmark, write its table and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short trainings, few rows")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    parser.add_argument("--data", help="folder with datasets.json")
    parser.add_argument("--out", type=Path, help="where the table is written")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("medium")  # quicker training; predictions are in float64
    warnings.simplefilter("ignore")  # of the peers
    size = TINY if arguments.tiny else QUICK if arguments.quick else FULL
    lines, ratios = [], []
    for task in tasks(arguments.data, size.train):
        found, ratio = run_task(task, size)
        lines += found
        ratios.append(ratio)
        for line in found:
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()})
    if arguments.out:
        with arguments.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(lines)
    print_figures(figures_of(lines, ratios))


if __name__ == "__main__":
    main()
