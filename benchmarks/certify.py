"""The cost of certificates, against predicting the same rows.

A classifier on 20 columns, the average of five networks of three hidden layers of 256; float64, one
thread.

    python -m benchmarks.certify [--quick | --tiny]
"""

import argparse

import numpy as np
import torch

from benchmarks.figures import print_figures
from experiments.timing import interleaved
from psilonnet import Design, PSiLONClassifier


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
    print_figures({**two, **{f"{name}_five_classes": value for name, value in five.items()}})


if __name__ == "__main__":
    main()
