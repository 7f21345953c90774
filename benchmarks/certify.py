"""The cost of certificates, against predicting the same rows.

A classifier on 20 columns, the average of five networks of three hidden layers of 256; float64, one
thread.

    python -m benchmarks.certify [--quick | --tiny]

Linear bounds are timed for networks of 3 x 128 with 8 pieces of 20 columns, in milliseconds a row
and network, without the methods before them; "auto" for 500 rows of a default classifier, in
seconds.
"""

import argparse
import time

import numpy as np
import torch

from benchmarks.figures import print_figures
from experiments.timing import interleaved
from psilonnet import Design, PSiLONClassifier
from psilonnet.certify import Box, class_margins, linear_falls
from psilonnet.tables import read_columns


def fitted(classes: int, steps: int) -> tuple[PSiLONClassifier, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12_000, 20))
    y = np.digitize(x[:, 0] + 0.5 * x[:, 1] ** 2, np.linspace(-1, 2, classes - 1))
    model = PSiLONClassifier(
        designs=[Design()],
        width=256,
        max_steps=steps,
        reg_strength=5e-3,
        random_state=0,
        verbose=False,
    )
    return model.fit(x[:2000], y[:2000]), x[2000:]


def ratios(classes: int, rounds: int, local_rows: int, steps: int) -> dict[str, float]:
    model, x = fitted(classes, steps)
    near = x[:local_rows]
    times = interleaved(
        {
            "predict": lambda: model.predict(x),
            "global": lambda: model.certified_radius(x, method="global"),
            "predict_near": lambda: model.predict(near),
            "local": lambda: model.certified_radius(near, method="local"),
        },
        rounds=rounds,
        warmup=1,
    )
    return {
        "global_over_predict": times["global"] / times["predict"],
        "local_over_predict": times["local"] / times["predict_near"] / max(1, classes - 1),
    }


def linear_milliseconds(rows: int, steps: int) -> dict[str, float]:
    """Return what linear bounds cost for a row and network, by the size of the box."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 20))
    y = (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(int)
    model = PSiLONClassifier(
        designs=[Design(pieces=8)],
        width=128,
        depth=3,
        max_steps=steps,
        reg_strength=1e-3,
        cv=2,
        random_state=0,
        verbose=False,
    ).fit(x, y)
    encoded = torch.from_numpy(model.encoder_.encode(read_columns(x[:rows])))
    asked = class_margins(model.net_(encoded))[1]
    found = {}
    for size in (0.05, 0.1, 0.25):
        box = Box.of(torch.full_like(encoded, size))

        def prove(box: Box = box) -> None:
            linear_falls(model.net_, encoded, box, asked)

        times = interleaved({"linear": prove}, rounds=3, warmup=1)
        found[f"linear_ms_{size}"] = 1000 * times["linear"] / rows / model.net_.members
    return found


def auto_seconds(rows: int, steps: int | str) -> float:
    """Return how long "auto" takes for rows of a default model, at 0.1 standard deviations."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000 + rows, 20))
    y = (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(int)
    model = PSiLONClassifier(random_state=0, verbose=False, max_steps=steps)
    model.fit(x[:2000], y[:2000])
    start = time.perf_counter()
    model.is_robust(x[2000:], 0.1)
    return time.perf_counter() - start


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, fewer rows")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rounds, rows = (1, 20) if given.tiny else (3, 500) if given.quick else (15, 2000)
    steps = 2 if given.tiny else 150
    two, five = (ratios(classes, rounds, rows, steps) for classes in (2, 5))
    print("two classes ", {name: round(value, 2) for name, value in two.items()})
    print("five classes", {name: round(value, 2) for name, value in five.items()}, "per margin")
    linear = linear_milliseconds(20 if given.tiny else 64, steps)
    auto = auto_seconds(10 if given.tiny else 500, 2 if given.tiny else "auto")
    print("linear, a row and network", {name: round(ms, 2) for name, ms in linear.items()})
    print(f"auto, all rows of a default model: {auto:.1f} s")
    two |= {**linear, "auto_seconds": auto}
    print_figures({**two, **{f"{name}_five_classes": value for name, value in five.items()}})


if __name__ == "__main__":
    main()
