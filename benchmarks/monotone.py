"""One training step of monotone networks over a step of the same networks by autograd.

Five members of three hidden layers of width 128, 16 columns of which five have a direction, batches
of 256 rows in float32 on one thread. Free networks have their gradients written out, which is
quicker still: the last column is a monotone step over such a one.

    python -m benchmarks.monotone [--quick | --tiny]
"""

import argparse
from itertools import product
from typing import Any

import torch

from benchmarks.figures import print_figures
from benchmarks.fit_step import KINDS
from experiments.timing import interleaved
from psilonnet.nn import MonotoneNet, PSiLONNet, path_norm_penalty
from psilonnet.training import Plan, Rows, Run

COLUMNS, MEMBERS = 16, 5
SIGNS = torch.tensor([1, -1, 1, 1, -1] + [0] * (COLUMNS - 5))
# Any function of the networks leaves their gradients to autograd; this one is the networks alone.
WAYS: dict[str, Any] = {
    "monotone": lambda net: MonotoneNet(net, SIGNS),
    "autograd": lambda net: net,
    "written out": None,
}


def begun(kind: str, pieces: int, width: int, way: str) -> Run:
    """Return a run to take steps of."""
    x = torch.randn(2000, COLUMNS, generator=torch.Generator().manual_seed(0))
    quantiles = torch.linspace(0, 1, pieces + 1)[1:-1]
    edges = torch.quantile(x, quantiles, dim=0) if pieces > 1 else None
    shape: dict[str, Any] = {"width": width, "depth": 3, "edges": edges, "members": (MEMBERS,)}
    return Run(
        PSiLONNet(COLUMNS, 1, **shape, **KINDS[kind]),
        Rows(x, x[:, :1] * x[:, 1:2]),
        loss="squared_error",
        penalty=path_norm_penalty,
        reg_strength=1e-3,
        plan=Plan(steps=10**6, batch_size=256, evaluate_every=10**6, progress=False),
        whole=WAYS[way],
    )


def main() -> None:
    """Print the milliseconds of a step, and what a direction costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the rounds")
    parser.add_argument("--tiny", action="store_true", help="small and quick, for a test")
    given = parser.parse_args()
    tiny, rounds = given.tiny, 3 if given.tiny else 20 if given.quick else 60
    torch.set_num_threads(1)
    print("kind pieces  monotone  over autograd  over written out")
    ratios = []
    for kind, pieces in product(KINDS, (1, 8)):
        runs = {way: begun(kind, pieces, 16 if tiny else 128, way) for way in WAYS}
        cases = {way: run.take_step for way, run in runs.items()}
        seconds = interleaved(cases, rounds=rounds)
        ratios.append(seconds["monotone"] / seconds["autograd"])
        quickest = seconds["monotone"] / seconds["written out"]
        shown = f"{kind:4} {pieces:6} {1e3 * seconds['monotone']:6.1f} ms"
        print(f"{shown} {ratios[-1]:14.2f} {quickest:17.2f}", flush=True)
    print_figures({"worst_over_autograd": max(ratios)})


if __name__ == "__main__":
    main()
