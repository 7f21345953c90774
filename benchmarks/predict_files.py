"""Many rows: ``psilonnet.scale.predict_files`` against the bare predictor, and its memory.

Made-up rows are written to Parquet files in a temporary folder. A pruned model predicts them

- with the bare predictor in a loop that reads and writes the same columns in the same batches,
- with ``predict_files`` in this process, and on Ray with one core,

in turn, portion by portion, because machines are noisy. Then a process of its own predicts a
quarter of the rows, and one all of them, and tells its peak memory (Linux only).
``rows_per_s_core`` is per second of a core's time, ``rows_per_s`` per second of the clock: they
differ on a busy machine.

    python -m benchmarks.predict_files [--quick] [--rows 20000000]
"""

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

# Before NumPy and Ray are loaded: one core each, and workers as important as this process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_worker_niceness", "0")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.alone import print_cost, run_alone
from benchmarks.figures import print_figures
from psilonnet.deploy import Predictor, class_numbers, probabilities
from psilonnet.scale import predict_files

FULL, QUICK = 20_000_000, 200_000
COLUMNS = [f"x{k}" for k in range(10)]
FILE_ROWS, GROUP_ROWS, BATCH, CALL = 1_000_000, 250_000, 131_072, 2048
COMPARED = 4_000_000  # rows at most that are predicted in all three ways
FILES, PORTIONS = 4, 2  # at least, and what is predicted in turn


def write_files(folder: Path, rows: int) -> list[Path]:
    """Write random rows, in files of at most a million."""
    rng = np.random.default_rng(0)
    count = max(FILES, -(-rows // FILE_ROWS))
    paths = []
    for k in range(count):
        own = rows * (k + 1) // count - rows * k // count
        columns = {name: rng.standard_normal(own, dtype=np.float32) for name in COLUMNS}
        paths.append(folder / f"{k:04d}.parquet")
        table = pa.table({"id": np.arange(own) + rows * k // count, **columns})
        pq.write_table(table, paths[-1], row_group_size=GROUP_ROWS)
    return paths


def export_model(folder: Path, width: int, steps: int) -> None:
    """Export a pruned classifier."""
    from psilonnet import Design, PSiLONClassifier  # noqa: PLC0415  # the children need no torch

    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, len(COLUMNS)))
    y = x[:, 0] + np.abs(x[:, 1]) + x[:, 2] * x[:, 3] + 0.3 * rng.normal(size=2000) > 0.8
    model = PSiLONClassifier(
        designs=[Design()],
        width=width,
        max_steps=steps,
        calibrate=False,
        prune=True,
        reg_strength=5e-3,
        random_state=0,
        verbose=False,
    )
    model.fit(x, y).export_numpy(folder)


def predict_bare(predictor: Predictor, path: Path, out: Path) -> None:
    """Predict a file with the predictor alone: nothing is checked, kept safe or resumed."""
    labels, writer = pa.array(predictor.classes), None
    out.mkdir(exist_ok=True)
    for batch in pq.ParquetFile(path).iter_batches(BATCH, use_threads=False):
        columns = {name: batch[name].to_numpy() for name in COLUMNS}
        calls = range(0, len(batch), CALL)
        outputs = np.concatenate(
            [
                predictor.decision_function({n: c[k : k + CALL] for n, c in columns.items()})
                for k in calls
            ]
        )
        table = pa.table(
            {
                "id": batch["id"],
                "prediction": labels.take(class_numbers(outputs)),
                **{f"p{k}": share for k, share in enumerate(probabilities(outputs).T)},
            }
        )
        writer = writer or pq.ParquetWriter(out / path.name, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def compare(paths: list[Path], model: Path, folder: Path) -> dict[str, float]:
    """Return the seconds of each way to predict the same files, taken in turn."""
    import ray  # noqa: PLC0415

    predictor = Predictor(model)

    def predict_all_bare(own: list[Path]) -> None:
        for path in own:
            predict_bare(predictor, path, folder / "bare")

    options: dict[str, Any] = {"keep": ["id"], "progress": False}
    ways: dict[str, Callable[[list[Path]], object]] = {
        "bare": predict_all_bare,
        "predict_files": lambda own: predict_files(model, own, folder / "files", **options),
        "ray": lambda own: predict_files(model, own, folder / "ray", cluster="local", **options),
    }
    seconds = dict.fromkeys(ways, 0.0)
    warm = folder / "warm.parquet"
    pq.write_table(pq.ParquetFile(paths[0]).read_row_group(0).slice(0, 1000), warm)
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        for way in ways.values():
            way([warm])
        for k in range(PORTIONS):
            for name, way in ways.items():
                start = perf_counter()
                way(paths[k::PORTIONS])
                seconds[name] += perf_counter() - start
    finally:
        ray.shutdown()
    return seconds


def predict_alone(model: Path, paths: list[Path], out: Path) -> dict[str, float]:
    """Predict files in a process of its own; return its seconds and its peak memory."""
    return run_alone("benchmarks.predict_files", model, out, *paths)


def child(model: str, out: str, *paths: str) -> None:
    print_cost(lambda: predict_files(model, paths, out, keep=["id"], progress=False))


def prediction_figures(rows: int) -> dict[str, float]:
    """Measure prediction of so many rows, and return the figures."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "in").mkdir()
        width, steps = (64, 100) if rows <= QUICK else (256, 1000)
        export_model(folder / "model", width, steps)
        paths = write_files(folder / "in", rows)
        portion = paths[: max(FILES, COMPARED * len(paths) // rows)]
        compared = sum(pq.read_metadata(path).num_rows for path in portion)
        seconds = compare(portion, folder / "model", folder)
        quarter = predict_alone(folder / "model", paths[: len(paths) // 4], folder / "quarter")
        whole = predict_alone(folder / "model", paths, folder / "whole")
    return {
        "rows": rows,
        "rows_per_s_core": rows / whole["cpu"],
        "rows_per_s": rows / whole["seconds"],
        "rows_per_s_bare": compared / seconds["bare"],
        "files_over_bare": seconds["bare"] / seconds["predict_files"],
        "ray_over_bare": seconds["bare"] / seconds["ray"],
        "peak_mb_quarter": quarter["peak_mb"],
        "peak_mb": whole["peak_mb"],
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} rows")
    parser.add_argument("--rows", type=int, default=FULL)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.child:
        child(*arguments.child)
    else:
        print_figures(prediction_figures(QUICK if arguments.quick else arguments.rows))


if __name__ == "__main__":
    main()
