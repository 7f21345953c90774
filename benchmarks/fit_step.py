"""One training step of a population over the bare products of its members.

A step is all that the loop does: batch, forward, loss, penalty, backward, Adam, bookkeeping. The
bare products are those that any training of these networks must make: one of each layer forward,
one for its weights and, but for the first layer, one for its inputs, into memory that is kept.
Three hidden layers, batches of 256 rows in float32 on one thread; milliseconds of one member. The
last column is a step of the pruning stage, over one before it.

    python -m benchmarks.fit_step [--quick | --tiny]
"""

import argparse
from collections.abc import Callable
from itertools import pairwise, product
from statistics import median
from typing import Any

import torch

from benchmarks.figures import print_figures
from experiments.timing import interleaved
from psilonnet.nn import PSiLONNet, path_norm_penalty
from psilonnet.training import Plan, Pruning, Rows, Run

ROWS, BATCH, COLUMNS, DEPTH = 2000, 256, 20, 3
KINDS: dict[str, dict[str, Any]] = {
    "L1": {"normalization": "l1", "length": "shared"},
    "L2": {"normalization": "l2", "length": "per_row"},
}
STAGE = Pruning(steps=10**6, row_norm=2.0)
Step = Callable[[], object]


def training_step(
    kind: str, members: int, pieces: int, width: int, prune: Pruning | None = None
) -> Step:
    """Return one step of our loop."""
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(0))
    quantiles = torch.linspace(0, 1, pieces + 1)[1:-1]
    net = PSiLONNet(
        COLUMNS,
        1,
        width=width,
        depth=DEPTH,
        edges=torch.quantile(x, quantiles, dim=0) if pieces > 1 else None,
        members=(members,),
        **KINDS[kind],
    )
    run = Run(
        net,
        Rows(x, (x[:, :1] * x[:, 1:2] > 0).float()),
        loss="binary_cross_entropy",
        penalty=path_norm_penalty,
        reg_strength=1e-3,
        plan=Plan(steps=10**6, batch_size=BATCH, evaluate_every=10**6, prune=prune, progress=False),
    )
    return run.take_step


def bare_products(members: int, pieces: int, width: int) -> Step:
    """Return the products of one step."""
    sizes = [COLUMNS * pieces, *[width] * DEPTH, 1]
    flows = [torch.randn(members, BATCH, size) for size in sizes]
    slopes = [torch.randn(members, BATCH, size) for size in sizes]
    weights = [torch.randn(members, b, a) / a for a, b in pairwise(sizes)]
    results = [torch.empty_like(weight) for weight in weights]

    def step() -> None:
        for k, weight in enumerate(weights):
            torch.bmm(flows[k], weight.mT, out=flows[k + 1])
        for k in reversed(range(len(weights))):
            torch.bmm(slopes[k + 1].mT, flows[k], out=results[k])
            if k:
                torch.bmm(slopes[k + 1], weights[k], out=slopes[k])

    return step


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, fewer shapes")
    parser.add_argument("--tiny", action="store_true", help="once, to show that it runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rounds = 1 if given.tiny else 15 if given.quick else 60
    counts = (1, 10) if given.quick or given.tiny else (1, 3, 5, 10, 20)
    widths = (64, 128) if given.quick or given.tiny else (64, 128, 256)

    ratios: dict[str, dict[tuple[int, int, int], float]] = {kind: {} for kind in KINDS}
    above: dict[int, float] = {}
    pruning: list[float] = []
    print("milliseconds of a member-step, and its ratio to the bare products")
    print("width pieces members   bare     L1           L2    pruning")
    for shape in product(widths, (1, 8), counts):
        width, pieces, members = shape
        cases: dict[str, Step] = {"bare": bare_products(members, pieces, width)}
        cases |= {kind: training_step(kind, members, pieces, width) for kind in KINDS}
        cases["pruning"] = training_step("L1", members, pieces, width, STAGE)
        seconds = interleaved(cases, rounds=rounds, warmup=1 if given.tiny else 5)
        shown = f"{width:5} {pieces:6} {members:7} {1e3 * seconds['bare'] / members:6.2f} "
        for kind in KINDS:
            ratios[kind][shape] = seconds[kind] / seconds["bare"]
            shown += f"{1e3 * seconds[kind] / members:6.2f} {ratios[kind][shape]:5.2f} "
        if width == 64 and pieces == 1:
            above[members] = 1e3 * (seconds["L1"] - seconds["bare"])
        pruning.append(seconds["pruning"] / seconds["L1"])
        print(f"{shown} {pruning[-1]:5.2f}", flush=True)

    wide = {kind: {k: r for k, r in ratios[kind].items() if k[0] >= 128} for kind in KINDS}
    print_figures(
        {
            "worst_ratio_l1": max(wide["L1"].values()),
            "worst_ratio_l2": max(wide["L2"].values()),
            "ratio_m1": ratios["L1"][128, 1, 1],
            "ratio_m10": ratios["L1"][128, 1, 10],
            "overhead_w64_ms": above[1],
            "pruning_over_l1": median(pruning),
            "worst_pruning_over_l1": max(pruning),
            "overhead_w64_ms_per_member_m10": above[10] / 10,
        }
    )


if __name__ == "__main__":
    main()
